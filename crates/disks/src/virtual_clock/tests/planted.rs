//! The model's C source with an error planted in it: what is asked of every disk must find each.

use super::*;
use pickfs_system::sys::disk_model::SOURCES;

/// The text that is replaced in model.c, and by what.
const PLANTED: &[(&str, &str, &str)] = &[
    ("commands overtake FLUSH", "	if (r->order < barrier(d))\n		admit", "	if (1)\n		admit"),
    ("FLUSH leaves the cache", "			if (d->slots)\n				return destage(d, now);\n			d->arm", "			d->arm"),
    ("the platter stands still", "return moves + (angle(d, &to) + turn", "return moves + 0 * (angle(d, &to) + turn"),
    ("a request is lost", "while (i < d->queued && d->requests", "while (i + 1 < d->queued && d->requests"),
    ("the cache answers before it is asked", "			end(d, tag, quick);\n			return;", "			end(d, tag, now);\n			return;"),
    ("two at one arm", "	if (d->arm != RESTS)\n		return;\n	look_ahead", "	look_ahead"),
    (
        "a write of parts reads all that it replaces",
        "now = read_pages(d, r, first, FTL_UNIT_SECTORS, now);",
        "now = read_pages(d, r, first, whole, now);",
    ),
    ("parts at the end of a write are not read", "if (last < whole && !(before && !last))", "if (0)"),
    ("a disk is idle while it reads", "d->last_command = larger(d->last_command, when);", ";"),
    ("no age limit", "now - r->ready > d->p[SIM_AGE_LIMIT_NS]", "0"),
    ("the seek curve is read backwards", "(cylinders - pairs[2 * low]) / span", "(pairs[2 * high] - cylinders) / span"),
    ("tracks have no skew", "		if (sectors)\n			all += at.head", "		if (0)\n			all += at.head"),
    (
        "a die programs all at once",
        "add_span(d, die, begins, begins + takes);\n	d->last",
        "add_span(d, die, begins, begins);\n	d->last",
    ),
    ("flash forgets to program", "	return larger(now, last_program(d));", "	return now;"),
    ("credits have no end", "	if (d->base_due > spare)", "	if (0)"),
    ("a card copies nothing", "	if (d->units[found].at != offset)", "	if (0)"),
    ("a log has no end", "d->waiting_bands && d->logged + sectors > d->p[SIM_LOG_SECTORS]", "0"),
    ("garbage collection takes no time", "add_span(d, die, begins, begins + takes);\n	d->counts", "d->counts"),
    ("a valid unit is erased", "				copy(f, f->held[slot] - 1);", "				ftl_trim(f, f->held[slot] - 1);"),
    ("an overwritten unit stays valid", "		return;\n	ftl_trim(f, unit);", "		return;"),
    ("TRIM forgets what waits", "d->waiting[i] >= from && d->waiting[i] < until", "0"),
    ("TRIM frees nothing", "unit < until && unit < d->p[SIM_UNITS]", "0"),
    (
        "a fuller block is collected",
        "	return f->queues[f->least];",
        "	{ unsigned int v = f->per_block * 15 / 16; while (v > f->least && f->queues[v] == FTL_NONE) v--; return f->queues[v > f->least ? v : f->least]; }",
    ),
    ("reads pass a busy die by", "die == SIM_NEVER ? now", "d->p[SIM_UNITS] ? now"),
    (
        "reads wait for what a channel has to move for programs",
        "begins = larger(now, d->channel_reads[channel]);",
        "begins = larger(larger(now, d->channel_reads[channel]), d->channel_free[channel]);",
    ),
    (
        "a read waits for a program that has not begun",
        "d->span_count[die] && of->begins <= begins",
        "d->span_count[die]",
    ),
    ("a read does not wait for a program", "waits = smaller(of->ends - begins, d->p[SIM_SUSPEND_NS]);", "waits = 0;"),
    ("a die is busy from its first program to its last", "of[*count - 1].ends < begins && ", "0 && "),
    ("a program goes on while its die reads", "of[i].begins < free; i++", "0; i++"),
    ("a channel moves two things at once", "		d->channel_free[channel] += moves;", "		;"),
    ("what makes units whole is the host's", "land(d, SIM_NEVER, d->open_own, ", "land(d, SIM_NEVER, sectors, "),
    ("reading ahead has no end", "if (reached < d->ahead_limit)", "if (1)"),
    ("a zone is written anywhere", "offset != zone->pointer || ", ""),
    ("a zone has no end", " || offset + sectors > z->size)", ")"),
    ("a full zone stays open", "	if (zone->pointer == z->size)", "	if (0)"),
    ("a part of a physical sector is written", "	if ((offset | sectors) % ZBC_PHYSICAL_SECTORS)", "	if (0)"),
    ("RESET leaves data", "	zone->pointer = zone->data = 0;", "	zone->pointer = 0;"),
    (
        "FINISH makes data",
        "		zone->pointer = (unsigned int)z->size;",
        "		zone->pointer = zone->data = (unsigned int)z->size;",
    ),
    ("an append goes to the zone's start", "	*first += zone->pointer;", ""),
    ("conventional zones are reset", "command == ZBC_WRITE && *first + sectors", "*first + sectors"),
    (
        "RESET ALL forgets the last zone",
        "number < z->zones; number++)\n			reset",
        "number + 1 < z->zones; number++)\n			reset",
    ),
    ("an open zone is empty", "zone->pointer ? ZBC_CLOSED", "0 ? ZBC_CLOSED"),
    ("all flushes take the same", "draw = (draw ^ draw >> 31) % 1000000;", "draw = 500000;"),
    ("flushes have one mode", "	while (to[0] <= draw)", "	while (0)"),
    ("a wait for the link has no part", "	wait_for_link(d, now, copying, parts);\n", ""),
    ("answered twice", "d->ends[0] = d->ends[--d->ending];", "d->ends[0] = d->ends[d->ending - 1];"),
];

/// A library of the model, with a text of its source replaced.
fn compiled(library: &std::path::Path, (from, to): (&str, &str), words: &[&str]) {
    let folder = library.parent().expect("a folder");
    let files = SOURCES.map(|(file, text)| {
        let file = folder.join(file);
        std::fs::write(&file, text.replace(from, to)).expect("written");
        file
    });
    let files = files.iter().filter(|file| file.extension().is_some_and(|kind| kind == "c"));
    let mut compiler = std::process::Command::new("cc");
    compiler.args(["-std=gnu89", "-O2", "-w", "-shared", "-fPIC"]).args(words).arg("-o").arg(library).args(files);
    assert!(compiler.status().expect("a C compiler, which builds pickfs").success(), "{from}");
}

/// Two at a time: each compiles the model.
#[test]
fn every_planted_error_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let is_missed = |at: usize, (name, from, to): &(&str, &str, &str)| {
        let places = SOURCES.iter().map(|(_, text)| text.matches(from).count()).sum::<usize>();
        assert_eq!(places, 1, "{name}: the text to replace");
        let folder = folder.path().join(at.to_string());
        std::fs::create_dir(&folder).expect("a folder");
        let library = folder.join("planted.so");
        compiled(&library, (from, to), &[]);
        let planted = |words: &Words| DiskModel::of_library(&library, words).expect("a model");
        let found = all(&planted, 80_000);
        println!("{name}: {found:?}");
        found.is_ok()
    };
    let missed = |first: usize| {
        let own = PLANTED.iter().enumerate().skip(first).step_by(2);
        own.filter(|(at, planted)| is_missed(*at, planted)).map(|(_, (name, ..))| *name).collect::<Vec<_>>()
    };
    let missed = std::thread::scope(|scope| {
        let other = scope.spawn(|| missed(1));
        [missed(0), other.join().expect("the other half")].concat()
    });
    assert!(missed.is_empty(), "not found: {missed:?}");
}

/// Undefined behaviour would end this test by a signal.
#[test]
fn no_request_makes_the_model_do_what_c_does_not_define() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = folder.path().join("checked.so");
    compiled(&library, ("\0", ""), &["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]);
    all(&|words: &Words| DiskModel::of_library(&library, words).expect("a model"), 40_000).expect("all holds");
}
