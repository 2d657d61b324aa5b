#!/usr/bin/env python3
"""What a run of pickfs comes to, computed anew from its journal: plan and samples, nothing else.
    python3 verdict.py JOURNAL          prints JSON; a journal may be compressed by xz
It follows docs/statistics.md, "The verdict, step by step": numbers in brackets are steps there. It shares no code with
pickfs and reads no figure that pickfs has computed. Of the run's own looks it takes only their rounds and who left, as
these decide what was measured; what each look should have said is computed anew from the records before it.
"""
import json, lzma, math, sys
from collections import defaultdict
from contextlib import suppress
from functools import cache
from itertools import accumulate, combinations, combinations_with_replacement
from math import exp, fsum, inf, log, log1p, sqrt
from statistics import NormalDist, fmean as mean, geometric_mean, median
# ---------------------------------------------------------------- [1] the journal
def records(path):
    for line in (lzma.open if path.endswith(".xz") else open)(path, "rb"):
        with suppress(ValueError, AttributeError):  # torn by a crash
            (found,) = json.loads(line).items()
            yield found
class Run:  # plan, cells and looks, as these records leave them
    def __init__(self, found):
        cells, self.looks, out, facts, speeds = {}, [], set(), {}, {}
        for kind, it in found:
            cell = cells.get(it.get("cell"))
            if kind == "run": plan, self.imported = json.loads(json.dumps(it["plan"])), it.get("imported", "")
            elif kind == "begin": cells[it["cell"]] = dict(it, samples=[], facts={}, largest={}, weak=[], wrong=[], end=None)
            elif kind == "speed": speeds[it["cell"]] = (it["times"], it.get("processors")) != (1, None)
            elif kind == "look": self.looks.append(it)
            elif kind == "unfit": out.add((it["target"], it["work"]))
            elif kind == "aim": plan["stop"] = it
            elif kind == "sample" and cell: cell["samples"].append((it["phase"], it["metric"], float(it["value"])))
            elif kind == "end" and cell: cell["end"] = it["outcome"]
            elif kind == "provenance" and not cell: facts.update(it.get("facts", {}))
            elif kind == "provenance":
                cell["weak"], cell["wrong"] = cell["weak"] + it.get("weakened", []), cell["wrong"] + it.get("mismatches", [])
                for name in ("facts", "largest"): cell[name].update(it.get(name, {}))
        for cell in cells.values(): cell.update({"end": {"failed": "another stack"}, "samples": []} if cell["wrong"] else {})
        stop, asks = plan.get("stop") or {}, plan.get("verdict") or {}
        self.fixed, self.precision, self.threshold = stop.get("rounds"), stop.get("precision"), stop.get("threshold", 0.03)
        self.most, self.each_round, self.races = self.fixed or 40, plan.get("looks") == "each_round", stop.get("race", True)
        self.confidence = 0.95 if self.fixed is not None else 0.97 if self.precision is not None else 0.984
        self.asks, self.adds, self.ranks_weak = asks, bool(asks.get("costs")), plan.get("rank_weakened")
        self.planned, works, self.reference = plan.get("targets", []), plan.get("works", []), plan.get("reference", "")
        out |= {(cell["target"], cell["work"]) for cell in cells.values() if is_(cell, "skipped")}
        self.others = [one["name"] for one in self.planned if not one.get("duplicate")]
        sound = [name for name in self.others if any((name, work["name"]) not in out for work in works)]
        copies = [one for one in self.planned if one.get("duplicate")]
        if sound and self.reference in self.others and self.reference not in sound:
            self.reference = sound[0]  # nothing could be done on the planned one
            copies = [one.update(name=sound[0] + " (again)") or one for one in copies]
        self.copy, self.looks = copies[0]["name"] if copies else None, [it for it in self.looks if 1 <= it["round"] <= self.most]
        begun = [cell for name, cell in cells.items() if not speeds.get(name)]
        names = lambda planned, of: list(dict.fromkeys([one["name"] for one in planned] + [cell[of] for cell in begun]))
        self.targets = names(self.planned, "target")
        simulated = any(name.startswith("guest ") and fact.endswith(", simulated") for name, fact in facts.items())
        judged, machines = {w["name"]: w.get("judged") or {} for w in works}, {t["name"]: t.get("machine") or {} for t in self.planned}
        several = {t for t, m in machines.items() if m.get("processors", 1) != 1 and m.get("kernel") != "bullseye"}
        self.works = [Work(self.targets, [cell for cell in begun if cell["work"] == name], name, judged.get(name, {}), set(self.targets) - several if simulated else set())
                      for name in names(works, "work")]
        self.last = max((at for work in self.works for at in work.rounds), default=0)
        self.made, self.first = sorted({look["round"] for look in self.looks}), self.reference or next(iter(self.targets), "")
        left = {one["target"]: look["round"] for look in reversed(self.looks) for one in look.get("leaving", [])}
        left.setdefault(self.copy, min(left.get(self.reference, inf), 8 if self.each_round else inf))
        self.gone, self.last_of = left, {name: left.get(name, inf) for name in self.targets}
        self.is_whole = len(self.works) < 2 and not asks.get("parts")  # one work, taken whole, is the verdict
        self.is_unreliable = unreliable(self)
is_ = lambda cell, outcome: isinstance(cell["end"], dict) and outcome in cell["end"]
# ---------------------------------------------------------------- [2] one value a round
class Work:
    def __init__(self, targets, cells, name, judged, alone):
        self.name, self.judged, self.cells, repeats = name, judged, defaultdict(dict), defaultdict(lambda: defaultdict(list))
        self.rounds = {cell["round"] for cell in cells if cell["end"] is not None}
        for cell in cells: self.cells[cell["target"]][cell["round"]] = cell
        for cell in (cell for name in targets for _, cell in sorted(self.cells[name].items()) if cell["end"] == "done"):
            for phase, metric, value in cell["samples"]: repeats[cell["target"], phase, metric][cell["round"]].append(value)
        self.series = {key: {at: one_observation(all_) for at, all_ in of.items()} for key, of in repeats.items()}
        for name, phase, metric in list(self.series):
            own, of = self.series[name, phase, metric], lambda other: self.of(name, phase, other)
            gross, program, foreign = of("cpu_system_wide_ns"), of("cpu_workload_ns"), of("foreign_cpu_ns")
            net = {at: max(own[at] - foreign.get(at, 0), 0) for at in own}
            if metric == "cpu_system_wide_ns": self.series[name, phase, "cpu_net_ns"] = net
            if metric == "time_ns" and name in alone:  # the one processor serves the kernel's workers and the program in turn
                workers = {at: max(gross[at] - program[at], 0) for at in gross if at in program}
                self.series[name, phase, "alone"] = {at: max(own[at] - workers.get(at, 0), 0) for at in own}
    def of(self, target, phase, metric): return self.series.get((target, phase, metric), {})
    def phases(self, metric="time_ns"): return list(dict.fromkeys(phase for _, phase, name in self.series if name == metric))
    def whole(self, target, metric):
        named, how = self.judged.get("phases") or [], self.judged.get("combine", "sum")
        of = [self.of(target, phase, metric) for phase in self.phases(metric) if not named or phase in named]
        found = {at: [series[at] for series in of if at in series] for at in sorted(set().union(*of))}
        geometric = lambda values: geometric_mean(values) if min(values) > 0 else 0.0
        made = {"sum": sum, "largest": max, "first": lambda values: values[0], "geometric-mean": geometric}[how]
        return {at: made(values) for at, values in found.items() if how in ("largest", "first") or len(values) == len(of)}
def one_observation(values): return values[0] if min(values) == max(values) else geometric_mean(values) if min(values) > 0 else mean(values)
def score(run, target, metric):
    """All terms of the verdict as one value a round: a sum where the plan counts, else the weighted geometric mean."""
    works, terms = {work.name: work for work in run.works}, run.asks.get("parts") or [{"work": w.name} for w in run.works]
    value = lambda work, phase: work.of(target, phase, metric) if phase else work.whole(target, metric)
    amounts, found = [term.get("amount", 1) for term in terms], [value(works[t["work"]], t.get("phase")) for t in terms]
    rounds, pairs = sorted(set.intersection(*map(set, found))) if found else [], list(zip(amounts, found))
    if run.adds or amounts == [1]: return {at: sum(amount * values[at] for amount, values in pairs) for at in rounds}
    mean_log = lambda at: sum(amount / sum(amounts) * log(values[at]) for amount, values in pairs)
    return {at: exp(mean_log(at)) if all(values[at] > 0 for values in found) else 0.0 for at in rounds}
# ---------------------------------------------------------------- [3] textbook statistics
@cache
def rank_counts(n):
    counts = [1]  # choices of signs by the sum of ranks
    for rank in range(1, n + 1): counts = [a + b for a, b in zip(counts + [0] * rank, [0] * rank + counts)]
    return counts
def signed_rank_k(n, one_sided):
    """The largest K with P(W+ < K) <= one_sided; 0 where there is none (Hollander & Wolfe 1999)."""
    if n <= 100: return sum(below <= one_sided * 2**n for below in accumulate(rank_counts(n)))
    sums = NormalDist(n * (n + 1) / 4, sqrt(n * (n + 1) * (2 * n + 1) / 24))
    return max(math.floor(sums.inv_cdf(one_sided) + 0.5), 0)
@cache
def student(freedom, one_sided):
    """What Student's t exceeds with this chance: the finite sums of Abramowitz & Stegun, 26.7.3 and 26.7.4."""
    def inside(t):
        cos2, term, total = freedom / (freedom + t * t), 1.0, 0.0
        for i in range(freedom % 2, freedom - 1, 2): total, term = total + term, term * (i + 1) / (i + 2) * cos2
        sine = t / sqrt(freedom + t * t)
        return 2 / math.pi * (math.atan(t / sqrt(freedom)) + sine * sqrt(cos2) * total) if freedom % 2 else sine * total
    low, high = 0.0, 1e9
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if inside(middle) < 1 - 2 * one_sided else (low, middle)
    return low
variance = lambda values: fsum((value - c) ** 2 for c in [mean(values)] for value in values) / (len(values) - 1)
def by_ranks(pair, one_sided, fewest):
    """Lower bound, Hodges-Lehmann estimate and upper bound; None where there are too few rounds."""
    k = signed_rank_k(len(pair), one_sided) if len(pair) >= fewest else 0
    averages = sorted((a + b) / 2 for a, b in combinations_with_replacement(pair, 2)) if k else []
    return (averages[k - 1], median(averages), averages[-k]) if k else None
def by_student(pair, one_sided, lent=0, others=0.0):
    """The same by Student; some degrees of freedom may be lent by other pairs, whose mean variance draws up the own."""
    if (own := len(pair) - 1) < 2: return None
    drawn = (lent * max(others, variance(pair)) + own * variance(pair)) / (lent + own)
    half = student(lent + own, one_sided) * sqrt(drawn / len(pair))
    return mean(pair) - half, mean(pair), mean(pair) + half
def lagged(values):
    off = [value - centre for centre in [mean(values)] for value in values]
    return fsum(a * b for a, b in zip(off, off[1:])), fsum(a * a for a in off)
def corrected(products, squares, n, series=1.0):
    """Autocorrelation of the first order (Kendall 1954), and how many standard errors it is above none (Moran 1948)."""
    if n < 4 or squares <= 1e-24 * n: return 0.0, 0.0
    error = (n - 2) / (n * sqrt(n - 1)) / sqrt(max(series, 1))
    return min(max((n * products / squares + 1) / (n - 3), 0), 0.95), (products / squares + 1 / n) / error
def pooled(rows):
    n = len(rows[0]) if rows else 0
    found = [lagged([a - mean(column) for a, column in zip(row, zip(*rows))]) for row in rows]
    products, squares, fourth = (fsum(of) for of in zip(*((p, s, s * s) for p, s in found))) if rows else (0, 0, 0)
    return corrected(products, squares, n, squares**2 / fourth * (len(rows) - 1) / len(rows)) if squares else (0.0, 0.0)
at_least = lambda found, errors: found[0] if found[1] >= errors else 0.0
def shared(first, second):  # values of the rounds that both have, where a ratio can be made
    return [(first[at], second[at]) for at in sorted(first) if first[at] > 0 and second.get(at, 0) > 0]
def paired(first, second, confidence):
    """Bounds, None for fewer than three rounds, and centre of the logarithm of first over second; None without a round."""
    pair, one_sided = [log(a) - log(b) for a, b in shared(first, second)], (1 - confidence) / 2
    return by_ranks(pair, one_sided, 6) or by_student(pair, one_sided) or ((None, mean(pair), None) if pair else None)
def sums(first, second):
    """Ratio, lower and upper bound of what all rounds of two targets add up to (Cochran 1977)."""
    both = shared(first, second)
    n, a, b = len(both), sum(a for a, _ in both), sum(b for _, b in both)
    if n < 3: return (a / b, 0.0, inf) if n else (0.0, 0.0, 0.0)
    half = student(n - 1, 0.025) * sqrt(fsum((x - a / b * y) ** 2 for x, y in both) / (n - 1) / n) / (b / n)
    return a / b, a / b - half, a / b + half
# ---------------------------------------------------------------- [4] looks, and what each may spend
def spent(run, made):
    """(round, chance of error of all comparisons together, power of their number, alone) of each look."""
    if run.fixed is not None or not made: return [(run.last, 0.05, 1, True)]
    if run.each_round:
        early, late = dict(zip(range(3, 8), (0.02, 0.03, 0.04, 0.05, 0.06))), lambda n: 0.184 * sqrt(n / 40)
        return [(n, 0.05 * early.get(n, late(n)), 1 if n < 8 else 1.08, False) for n in made if 3 <= n <= 40]
    due, share, free, found = (3, 4, 5, 6, 8, 11, 15, 20, 28, 40), (0.02, 0.04, 0.06, 0.08) + 6 * (0.216,), 0, []
    for n, place in ((n, sum(at < n for at in due)) for n in made if 3 <= n <= 40):
        if place >= free: found, free = found + [(n, 0.05 * share[place], 1, False)], place + 1
    return found
# ---------------------------------------------------------------- [5] bounds of all differences, look by look
class Field:
    """Targets side by side; the copy of the reference, where there is one, comes last and only shows the noise."""
    def __init__(self, run, names, values, reference, copy, lacking):
        rows = names + [copy] * bool(copy and values[copy])
        self.run, self.names, self.rounds = run, names, sorted(set().union(*(values[name] for name in rows)))
        self.logs = [[log(values[name][at]) if values[name].get(at, 0) > 0 else None for at in self.rounds] for name in rows]
        self.twins = (names.index(reference), len(names)) if len(rows) > len(names) and reference in names else None
        self.lacking = [[at in lacking[name] for at in self.rounds] for name in names]
        whole = [value for name in names for value in values[name].values()] if run.imported not in ("", "pickfs") else [0.5]
        is_coarse = all(v >= 1 and abs(v - round(v)) < 1e-6 and v < 2**53 for v in whole)
        self.tick = log1p(math.gcd(*map(round, whole)) / min(map(round, whole), default=1)) if is_coarse else 0.0
        self.above, self.out = [[inf] * len(names) for _ in names], [None] * len(names)
        self.regret, self.is_dependent = [inf] * len(names), False
    def here(self): return [at for at, by in enumerate(self.out) if by is None]
    def look(self, look, comparisons):
        (last, chance, power, alone), count, n = look, len(self.names), sum(at <= look[0] for at in self.rounds)
        logs = [row[:n] for row in self.logs]
        here = self.here() + list(range(count, len(logs)))  # the copy always is
        full = [at for at in here if None not in logs[at]]
        pairs = {(i, j): [a - b for a, b in zip(logs[i], logs[j]) if None not in (a, b)]
                 for i, j in combinations(range(len(logs)), 2)}
        others = [variance(pair) for at, pair in pairs.items() if len(pair) == n >= 3 and set(at) <= set(here)]
        every, own = (pooled([logs[at] for at in full if at < most]) for most in (inf, inf if n < 8 else count))
        common, lent = max(at_least(own, 1.3), at_least(every, 2.5)), min(4, max(len(full) - 2, 0) * max(n - 1, 0))
        def wide(pair, found):
            r = max(common, at_least(corrected(*lagged(pair), len(pair)), 2) if len(pair) >= 6 else 0)
            return found and tuple(found[1] + (end - found[1]) * sqrt((1 + r) / (1 - r)) for end in found)
        def bounds(pair, level, is_alone=False):
            if not is_alone: return wide(pair, by_ranks(pair, level, 8) or by_student(pair, level, lent, mean(others) if others else 0))
            ranks, drawn = wide(pair, by_ranks(pair, 0.7 * level, 8)), wide(pair, by_student(pair, 0.7 * level))
            return (max(ranks[0], drawn[0]), 0, min(ranks[2], drawn[2])) if ranks else wide(pair, by_student(pair, level))
        def upper(known, pair, i, j):
            missing = sum(lacks and other is not None for lacks, other in zip(self.lacking[i], logs[j]))
            slow = missing and by_ranks(pair + [1e3] * missing, level, 8)
            return known if not missing else max(known, wide(pair, slow)[2]) if slow and slow[2] < 250 else inf
        apart = bounds(pairs[self.twins], 0.0025) if self.twins else None
        wider = self.tick + (abs(apart[1]) if apart and (apart[0] > 0 or apart[2] < 0) else 0)
        if at_least(every, 2.5) > 0.35 and not self.is_dependent:
            self.above, self.out, self.is_dependent = [[inf] * count for _ in self.names], [None] * count, True
        if self.run.each_round and not alone and n < 20 and at_least(own, 1.3) > 0: return self  # too few to say how much
        level = chance / max(comparisons, 1) ** power
        for i, j in combinations(self.here(), 2):
            pair, found = pairs[i, j], bounds(pairs[i, j], level, alone)
            for a, b, known, own in ((i, j, found[2], pair), (j, i, -found[0], [-x for x in pair])) if found else ():
                self.above[a][b] = min(self.above[a][b], upper(known, own, a, b) + wider)
        return self
    def eliminate(self):
        """[6] Who is beaten leaves, unless each is beaten; then how much slower than the best each can be."""
        here, least = self.here(), lambda at: min((self.above[by][at], by) for by in self.here() if by != at)
        beaten = {at: least(at)[1] for at in here if len(here) > 1 and least(at)[0] < 0}
        for at, by in beaten.items() if len(beaten) < len(here) else (): self.out[at] = by
        self.regret = [max([0.0] + [row[other] for other in self.here() if other != at]) for at, row in enumerate(self.above)]
# ---------------------------------------------------------------- [7] who is ranked
def sign_k(n):
    """The largest K with P(X < K) <= 0.5 % of n fair coins; 0 where there is none."""
    return max((k for k in range(1, n // 2 + 1) if sum(math.comb(n, i) for i in range(k)) <= 0.005 * 2**n), default=0)
def vetoes(run, works, name, values):
    """Of each reason why a target is not ranked, whether it is final: no further round can change it."""
    cells = [cell for work in works for cell in work.cells[name].values()]
    done = [cell for cell in cells if cell["end"] == "done"]
    found = [True] * any(is_(cell, "failed") for cell in cells) + [True] * any(c["weak"] and not run.ranks_weak for c in done)
    found += [True] * any(sum(work.of(name, "recovery", "broken_promise_cuts").values()) > 0 for work in works)
    features = [cell["facts"]["features"].split() for cell in done if "features" in cell["facts"]]
    is_lacking = lambda word: not features or not all(word in words for words in features)
    is_small = lambda what, wanted: min((cell["largest"].get(what, -1) for cell in done), default=-1) < wanted
    lacks = any(map(is_lacking, run.asks.get("require", []))) or any(is_small(*it) for it in run.asks.get("holds", {}).items())
    found += [True] * bool(values and lacks)
    for limit in run.asks.get("limits", []):
        phases = [(work, phase) for work in works for phase in work.phases(limit["metric"]) if limit.get("phase") in (None, phase)]
        series = [sorted(work.of(name, phase, limit["metric"]).values()) for work, phase in phases]
        if any(median(of) > limit["at_most"] for of in series if of):
            found.append(any(sign_k(len(of)) and of[sign_k(len(of)) - 1] > limit["at_most"] for of in series))
    asked = len({at for work in run.works for at in work.rounds if at <= run.last_of[name]})
    return found + [len(values) < sign_k(asked)] * (not values or 2 * len(values) < asked)
def unreliable(run):
    """The reference differs from its copy too often, or others were at work in more than half of all phases."""
    apart, busy = [], []
    for work, phase in ((work, phase) for work in run.works for phase in work.phases()):
        twins = paired(work.of(run.copy, phase, "time_ns"), work.of(run.first, phase, "time_ns"), run.confidence)
        apart += [twins[0] > 0 or twins[2] < 0] if twins and twins[0] is not None else []
        times = [(name, at, time) for name in run.targets for at, time in work.of(name, phase, "time_ns").items()]
        for name, at, time in times:
            get = lambda metric: work.of(name, phase, metric).get(at, 0)
            disk, below = (get(where + "_read_bytes") + get(where + "_write_bytes") for where in ("device", "below"))
            busy.append(below - disk >= max(2**20, disk) or get("foreign_cpu_ns") >= max(2e7, 0.5 * time))
    of, k = len(apart), sum(apart)
    return k > 0 and fsum(math.comb(of, i) * 0.05**i * 0.95 ** (of - i) for i in range(k)) >= 0.99 or 2 * sum(busy) > len(busy)
# ---------------------------------------------------------------- [8] pairs and groups
class Judged:
    """A verdict on some works: values of each target by round -> groups, bounds, pairs."""
    def __init__(self, run, works, values, alone, is_part, looks):
        self.run, self.values, self.alone = run, values, alone
        others = [name for name in run.targets if name != run.copy]
        is_weak = lambda name: any(c["weak"] and c["end"] == "done" for w in run.works for c in w.cells[name].values())
        has = [name for name in others if values[name]]
        self.reference = run.first if run.first in has else next(iter([n for n in has if not is_weak(n)] + has), None)
        self.copy = run.copy if self.reference == run.first else None
        may_lack = lambda name, at: at < run.last and at <= run.last_of[name] and at not in values[name] and not run.imported
        skips = lambda name, at: any(is_(work.cells[name][at], "skipped") for work in works if at in work.cells[name])
        rounds = set().union(*(work.rounds for work in works))
        lacking = {name: {at for at in rounds if may_lack(name, at) and not skips(name, at)} for name in run.targets}
        self.vetoes = {name: vetoes(run, works, name, values[name]) for name in others}
        measured = [name for name in has if not self.vetoes[name]]
        ranked = comparable(measured, values, looks[-1][0] if looks else 0)
        parts = sum(len(work.phases()) + (len(work.phases()) > 1) or 1 for work in run.works) - run.is_whole
        comparisons, races = max(len(run.others) - 1, 1), 1 if parts == 0 else 2 * parts if is_part else 2
        self.field, every = (Field(run, names, values, self.reference, self.copy, lacking) for names in (ranked, has))
        for look in looks:
            self.field.look(look, comparisons).eliminate()
            every.look(look, comparisons * (comparisons + 1) * races)
        self.field = self.field if len(ranked) > 1 else None
        self.too_few = [name for name in measured if name not in ranked and self.field]
        self.vetoes.update({name: [False] for name in self.too_few})
        self.ranked = [name for name in others if not self.vetoes[name]]
        above = {a: dict(zip(has, row)) for a, row in zip(has, every.above)}
        self.least = dict(dict.fromkeys(run.targets, inf), **dict(zip(ranked, self.field.regret) if self.field else ()))
        noise = self.copy and paired(values[self.copy], values[self.reference], run.confidence)
        floor = max(abs(noise[0]), abs(noise[2])) if noise and noise[0] is not None else 0
        self.floor, self.regret = inf if run.is_unreliable else floor if floor >= 0.405 else 0, {}
        self.pairs = {(a, b): self.pair(a, b, above) for a in has for b in has if a != b}
        if self.field: self.race(ranked)
    def pair(self, a, b, above):
        """Ratio, lower and upper bound or None, and what they say; all pairs hold together."""
        found, band = paired(self.values[a], self.values[b], self.run.confidence), self.run.threshold
        if not found: return None
        low, high = -above[b][a], above[a][b]
        if max(self.least[a], self.least[b]) < inf:  # none is faster than the best
            low, high = max(low, -self.least[b]), min(high, self.least[a])
        says, lower, upper = "higher" if 0 < low < inf else "lower" if -inf < high < 0 else "too few rounds", None, None
        if -inf < low and high < inf:
            lower, upper = (exp(of(end, found[1])) for of, end in ((min, low), (max, high)))
            says = "tie" if lower >= 1 / (1 + band) and upper <= 1 + band else "higher" if lower > 1 else "lower" if upper < 1 else "unresolved"
        more, less = (self.values[name] for name in ((a, b) if says == "higher" else (b, a)))
        ratio, least, _ = sums(less, more) if self.run.adds else (0, 0, 0)
        is_doubted = says in ("higher", "lower") and (abs(found[1]) <= self.floor or ratio > 1 + band or least > 1)
        return exp(found[1]), lower, upper, "unresolved" if is_doubted or self.overturned(a, b) else says
    def overturned(self, a, b):
        """Which is faster without the kernel's workers, where that is the other one and by more than matters."""
        both, own = (paired(of[a], of[b], self.run.confidence) for of in (self.values, self.alone))
        is_other = both and own and both[1] * own[1] < 0 and max(abs(both[1]), abs(own[1])) > log1p(self.run.threshold)
        return (a if own[1] < 0 else b) if is_other else None
    def race(self, names):
        """[9] The pick, and in which group each of the others is."""
        run, band = self.run, 1 + self.run.threshold
        self.members = [names[at] for at in self.field.here()]
        self.dear, turned = set(), {name for name in names for o in names if o != name and self.overturned(name, o) == o}
        for name in names:
            shown = [self.pairs[name, o] for o in names if o != name and (len(names) <= 30 or o == self.reference)]
            self.regret[name] = max([math.expm1(self.least[name])] + [it[2] - 1 for it in shown if it and it[2] is not None])
            against = lambda others: [sums(self.values[name], self.values[o]) for o in others if o != name and run.adds]
            is_dear = any(r > band or low > 1 for r, low, _ in against(names)) or any(h > band for *_, h in against(self.members))
            if is_dear: self.dear.add(name)
        is_good = lambda name: self.regret[name] <= run.threshold and name not in self.dear | turned
        place = lambda name: round(min(self.regret[name], 1e9) * 1e9)  # equal but for rounding: in the plan's order
        members = (rank := lambda some: sorted(some, key=place))(self.members)
        first = [name for name in [self.reference] + members if name in names and is_good(name)] + members
        self.pick = first[0]
        rest = rank(name for name in names if name != self.pick)
        self.slower = [name for name in rest if self.pairs[name, self.pick][3] == "higher"]
        self.left = [name for name in rest if name not in self.slower and run.last_of[name] < run.last]
        self.as_good = [name for name in rest if name not in self.slower + self.left]
        self.good = sorted(rank(filter(is_good, names)), key=lambda name: name != self.pick) if not self.too_few else []
        self.is_settled = not self.too_few and self.regret[self.pick] <= run.threshold and self.pick not in self.dear
    def shown(self, name, is_shown):
        rows, finite = [n for n in self.run.targets if self.values[n] and n != self.run.copy], lambda v: v if v < inf else None
        kind, best = ("nothing" if len(self.ranked) < 2 else "too few rounds") if len(rows) > 1 else "single" if rows else "nothing", []
        if not is_shown and len(rows) > 1:
            kind = "nothing"  # its phases have no unit in common
        elif self.field and len(rows) > 1:
            all_ = ("unresolved", [self.pick] + self.as_good), ("pick", [self.pick]), ("tie", self.good)
            kind, best = all_[min(len(self.good), 2)]
        of = lambda n: dict(zip(("ratio", "low", "high", "finding"), self.pairs.get((n, self.reference)) or ()))
        found = {"name": name, "ranked": self.ranked, "kind": kind, "best": best}
        if self.field and is_shown:
            found |= {"pick": self.pick, "at_most_slower": finite(self.regret[self.pick]), "slower": self.slower,
                      "may_be_best": [self.pick] + self.as_good, "left_early": self.left}
        return found | {"rows": {n: dict(of(n), at_most_slower=finite(self.regret.get(n, inf))) for n in rows}}
def comparable(names, values, last):
    """Those of which each two share three rounds; one after the other is left out that shares too few with the most."""
    left, seen = list(names), {name: {at: v for at, v in values[name].items() if at <= last} for name in names}
    while True:
        lacks = {name: sum(len(shared(seen[name], seen[o])) < 3 for o in left if o != name) for name in left}
        if not any(lacks.values()): return left
        left.remove(max(left, key=lambda name: (lacks[name], -len(seen[name]), left.index(name))))
def judgements(run, looks):  # the verdict, and that on each work, which is the same where that is the verdict
    all_ = lambda of: [{name: of(name, metric) for name in run.targets} for metric in ("time_ns", "alone")]
    named = {part["work"] for part in run.asks.get("parts") or []} or {work.name for work in run.works}
    works, value = [work for work in run.works if work.name in named], lambda name, metric: score(run, name, metric)
    verdict = Judged(run, works, *all_(value), False, looks)
    own = lambda work: verdict if run.is_whole else Judged(run, [work], *all_(work.whole), True, looks)
    return verdict, [own(work) for work in run.works]
def look(found, at):
    """[10] What a look after this round should have decided, from the records before it, but for the end of a budget."""
    run = Run(found)
    judged = judgements(run, spent(run, run.made + [at]))[0]
    race = judged.field and judged
    sound = [name for name, against in judged.vetoes.items() if not any(against)]
    beaten = {race.field.names[i]: race.field.names[by] for i, by in enumerate(race.field.out) if by is not None} if race else {}
    here, row = [n for n in sound if n not in run.gone and n not in beaten], lambda n: judged.pairs.get((n, judged.reference))
    is_wide = lambda n: not row(n) or row(n)[1] is None or log(row(n)[2] / row(n)[1]) / 2 > log1p(run.precision)
    compared = [name for name, against in judged.vetoes.items() if not against and name != judged.reference]
    is_free, is_late = run.fixed is None and run.precision is None, run.fixed is None and at >= 8
    is_precise = is_late and run.precision is not None and compared and not any(map(is_wide, compared))
    is_stuck = is_free and race and len(here) < 2 and not any(judged.vetoes[name] for name in here)
    ends = [("decided", is_free and race and race.is_settled), ("precise", is_precise), ("rounds", at >= run.most),
            ("nothing", is_late and len(sound) < 2 or is_stuck)]
    is_kept = lambda name: name in {run.reference, judged.reference} and not (run.each_round and run.precision is None)
    slower = {name: {"slower_than": by} for name, by in beaten.items() if run.precision is None or at >= 8 and not is_wide(name)}
    leaving = {**slower, **{name: "vetoed" for name, against in judged.vetoes.items() if any(against)}}
    leaving = {name: why for name, why in leaving.items() if not is_kept(name) and name not in run.gone and run.races}
    bound = judged.regret[judged.pick] if race else inf
    end, best = next((why for why, holds in ends if holds), None), sorted(race.members) if race else []
    return {"round": at, "pick": judged.pick if race else "", "at_most_slower": bound if bound < inf else None, "best": best,
            "end": end, "leaving": leaving}
def main(path):
    run, looks = Run(found := list(records(path))), [(place, it["round"]) for place, (kind, it) in enumerate(found) if kind == "look"]
    verdict, works = judgements(run, spent(run, run.made))
    foreign = [bool(work.judged.get("headlines")) for work in run.works]  # another program's, shown in its own units
    shows = lambda work, is_foreign: len(work.phases()) == 1 or len(work.phases()) > 1 and not is_foreign
    shown = [judged.shown(work.name, shows(work, f)) for work, judged, f in zip(run.works, works, foreign)]
    overall = None if run.is_whole or any(foreign) else verdict.shown("all work", True)
    print(json.dumps({"overall": overall, "works": shown, "looks": [look(found[:p], at) for p, at in looks]}, indent=1))
if __name__ == "__main__": main(sys.argv[1])

