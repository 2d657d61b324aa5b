//! A fio job file, as far as it must be understood: its sections, which of them run together, and
//! what in it would reach beyond the file system under test. Read as fio 3.33 reads it
//! (`parse_jobs_ini` and `strip_blank_end`).

use anyhow::{Context, Result, ensure};
use pickfs_system::units::parse_size;
use std::path::Path;

/// A job file; comments and blank lines are gone.
#[derive(Debug, Default)]
pub(crate) struct Job {
    pub sections: Vec<Section>,
    /// Every option of the file, also of global sections.
    options: Vec<JobOption>,
}

/// One job with all that applies to it.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub name: String,
    line: usize,
    options: Vec<JobOption>,
}

#[derive(Clone, Debug)]
struct JobOption {
    line: usize,
    key: String,
    value: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rate {
    Bytes,
    Operations,
}

/// Stages are called so, with a number.
pub(crate) const STAGE: &str = "stage-";

/// Options that reach beyond the target, or into the machine, and what to do without them.
const ELSEWHERE: &[(&str, &str)] = &[
    ("allow_mounted_write", "leave it out: no device is written to"),
    ("cgroup", "leave it out: pickfs does not change cgroups"),
    ("directory", "leave it out: pickfs gives the folder, on the target"),
    ("exec_postrun", "leave it out, or use the workload `command`"),
    ("exec_prerun", "leave it out, or use the workload `command`"),
    ("include", "put the other file's lines in its place"),
    ("ioscheduler", "leave it out: it changes the machine for everybody"),
    ("opendir", "name files of the target with `filename`, or let fio name them"),
    ("read_iolog", "leave it out: a log names files anywhere"),
    ("write_iolog", "leave it out: it is written next to pickfs, not on the target"),
];

/// Engines that work on files; others work on networks, devices or nothing.
const ENGINES: &[&str] = &[
    "falloc", "filecreate", "filedelete", "filestat", "ftruncate", "io_uring", "libaio", "mmap", "posixaio", "psync",
    "pvsync", "pvsync2", "splice", "sync", "vsync",
];

impl Section {
    /// The last value that was given for any of the names.
    fn value(&self, names: &[&str]) -> Option<&str> {
        let found = self.options.iter().rev().find(|given| names.contains(&given.key.as_str()));
        found.map(|given| given.value.as_str())
    }

    fn is_set(&self, names: &[&str]) -> bool {
        self.value(names).is_some_and(|value| value != "0")
    }

    /// The phase that it is reported as.
    pub(crate) fn phase(&self) -> String {
        self.name.replace('/', "-")
    }

    /// Waits until all sections before it have ended.
    fn begins_a_stage(&self) -> bool {
        self.is_set(&["stonewall", "wait_for_previous"])
    }

    /// It ends with the time, not with the work.
    pub(crate) fn is_for_a_time(&self) -> bool {
        self.is_set(&["runtime", "timeout", "time_based"])
    }

    /// How many clones fio reports as one, where that is known.
    pub(crate) fn told_as_one(&self) -> Option<f64> {
        let clones = self.value(&["numjobs"]).filter(|_| self.is_set(&["group_reporting"]));
        clones.map_or(Some(1.0), |clones| clones.parse().ok())
    }

    /// It offers so much and no more, so that its time says nothing.
    pub(crate) fn is_at_a_rate(&self) -> bool {
        self.is_set(&["rate", "rate_iops"])
    }

    /// What one clone shall do of a direction in a second, in its unit; nothing where that is not
    /// plain to read, or where it shall rest too.
    pub(crate) fn asked(&self, direction: &str) -> Option<(f64, Rate)> {
        let named = [("rate_iops", Rate::Operations), ("rate", Rate::Bytes)];
        let (name, unit) = named.into_iter().find(|(name, _)| self.is_set(&[name]))?;
        if self.is_set(&["kb_base", "thinktime"]) {
            return None;
        }
        // One for all, or reads, writes and trims; fewer than three, the last is for the rest too.
        let values: Vec<&str> = self.value(&[name])?.split(',').collect();
        let index = ["read", "write", "trim"].iter().position(|known| *known == direction)?;
        let value = values[index.min(values.len() - 1)];
        Some((parse_size(value).ok()? as f64, unit))
    }

    pub(crate) fn is_poisson(&self) -> bool {
        self.value(&["rate_process"]) == Some("poisson")
    }
}

impl Job {
    pub(crate) fn read(path: &Path) -> Result<Job> {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let job = Job::parse(&text);
        ensure!(!job.sections.is_empty(), "{} has no job: no section but [global]", path.display());
        Ok(job)
    }

    pub(crate) fn parse(text: &str) -> Job {
        let (mut job, mut global) = (Job::default(), Vec::new());
        let mut in_global = true;
        for (line, content) in text.lines().enumerate().map(|(index, line)| (index + 1, without_comment(line))) {
            if let Some(name) = section_name(content) {
                // As fio does: whatever begins so.
                in_global = name.starts_with("global");
                if !in_global {
                    job.sections.push(Section { name: name.into(), line, options: global.clone() });
                }
            } else if !content.is_empty() {
                // As fio does: whatever begins so, with any or no character between.
                let include = content.strip_prefix("include").map(|file| ("include", file.trim_start_matches('=')));
                let (key, value) = include.or(content.split_once('=')).unwrap_or((content, "1"));
                let given = JobOption { line, key: key.trim().into(), value: value.trim().into() };
                job.options.push(given.clone());
                match job.sections.last_mut() {
                    Some(section) if !in_global => section.options.push(given),
                    _ => global.push(given),
                }
            }
        }
        job
    }

    /// Sections that run together, by stages that follow each other.
    pub(crate) fn stages(&self) -> Vec<&[Section]> {
        let ordered = self.sections.iter().any(|section| section.value(&["wait_for"]).is_some());
        let starts: Vec<usize> = (0..self.sections.len())
            // A section that waits for another must find it in the same run of fio.
            .filter(|index| *index == 0 || (!ordered && self.sections[*index].begins_a_stage()))
            .collect();
        let ends = starts.iter().skip(1).copied().chain([self.sections.len()]);
        starts.iter().zip(ends).map(|(start, end)| &self.sections[*start..end]).collect()
    }

    /// What cannot be done, with what to do instead.
    pub(crate) fn complaints(&self) -> Vec<(String, String)> {
        let mut found: Vec<(String, String)> = self.options.iter().filter_map(reaches_elsewhere).collect();
        found.extend(self.sections.iter().filter_map(bad_name));
        for (index, section) in self.sections.iter().enumerate() {
            if self.sections[..index].iter().any(|other| other.phase() == section.phase()) {
                let what = format!("line {}: two sections are called [{}]", section.line, section.name);
                found.push((what, "give each its own name: figures are reported by name".into()));
            }
        }
        for stage in self.stages().into_iter().filter(|stage| stage.len() > 1) {
            if let Some(section) = stage.iter().find(|section| section.is_set(&["group_reporting"])) {
                let what = format!("with `group_reporting` fio reports [{}] and its like as one", section.name);
                found.push((what, "leave it out: what clones of one section did is added up anyway".into()));
            }
        }
        found
    }
}

fn without_comment(line: &str) -> &str {
    line.split([';', '#']).next().unwrap_or_default().trim()
}

fn section_name(content: &str) -> Option<&str> {
    let rest = content.strip_prefix('[')?;
    Some(rest.strip_suffix(']').unwrap_or(rest))
}

fn reaches_elsewhere(given: &JobOption) -> Option<(String, String)> {
    let JobOption { line, key, value } = given;
    let complain = |why: &str, remedy: &str| Some((format!("line {line}: `{key}={value}` {why}"), remedy.to_string()));
    if let Some((_, remedy)) =
        ELSEWHERE.iter().find(|(name, _)| key == name || (*name == "cgroup" && key.starts_with(name)))
    {
        return complain("reaches beyond the target", remedy);
    }
    if key.contains("${") || value.contains("${") {
        return complain("depends on the environment", "write the value itself");
    }
    match key.as_str() {
        "filename" | "filename_format" if leaves(value) => {
            complain("lies outside of the target", "name a file without `/` in front and without `..`")
        }
        "ioengine" if !ENGINES.contains(&value.as_str()) => {
            complain("does not work on files of the target", &format!("use one of {}", ENGINES.join(", ")))
        }
        "mem" | "iomem" if value.contains(':') => complain("makes a file outside of the target", "use `mem=malloc`"),
        _ if key.starts_with("write_") && key.ends_with("_log") => {
            complain("writes a log outside of the target", "leave it out: every latency is in the journal")
        }
        _ => None,
    }
}

/// Whether one of the names, which stand with colons between them, leads out of the folder.
fn leaves(names: &str) -> bool {
    let outside = |name: &str| name.starts_with('/') || name == "-" || name.split('/').any(|part| part == "..");
    names.split(':').any(|name| outside(name.trim()))
}

/// A section's name is the beginning of its files' names.
fn bad_name(section: &Section) -> Option<(String, String)> {
    let Section { name, line, .. } = section;
    let what = format!("line {line}: no figures can be reported by the name [{name}]");
    let unfit = name.is_empty() || leaves(name) || name.starts_with(STAGE);
    unfit.then(|| (what, "give the section a plain name".to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATABASE: &str = "; a comment\n[global]\nioengine=psync ; inline\nbs=8k\n\n[load]\nrw=write\n  size = 4m\n[query]\nstonewall\n\
                            rw=randread # too\nrate_iops=100\n[commit]\nruntime=1\n[global]\nstonewall=1\n[last]\nbs=1k\n[also]\nstonewall=0";

    #[test]
    fn sections_have_what_stands_in_global_before_them() {
        let job = Job::parse(DATABASE);
        let names: Vec<Vec<&str>> =
            job.stages().iter().map(|stage| stage.iter().map(|section| section.name.as_str()).collect()).collect();
        assert_eq!(names, [vec!["load"], vec!["query", "commit"], vec!["last", "also"]]);
        let [load, query, commit, last, _] = &job.sections[..] else { panic!("{job:?}") };
        assert_eq!([load.value(&["bs"]), last.value(&["bs"])], [Some("8k"), Some("1k")]);
        assert_eq!((load.value(&["size"]), load.value(&["ioengine"])), (Some("4m"), Some("psync")));
        assert_eq!([query.is_at_a_rate(), commit.is_at_a_rate()], [true, false]);
        assert_eq!([query.is_for_a_time(), commit.is_for_a_time()], [false, true]);
        assert!(job.complaints().is_empty(), "{:?}", job.complaints());
    }

    #[test]
    fn who_waits_for_a_section_runs_with_it() {
        let job = Job::parse("[a]\nrw=write\n[b]\nstonewall\nwait_for=a\nrw=read");
        assert_eq!(job.stages().len(), 1);
    }

    #[test]
    fn what_reaches_elsewhere_is_found_with_its_line() {
        let rows = [
            ("filename=/dev/sda", "line 3"),
            ("filename=a:/etc/b", "outside"),
            ("filename=a/../../b", "outside"),
            ("filename=-", "outside"),
            ("filename_format=../$jobname", "outside"),
            ("directory=sub", "beyond the target"),
            ("opendir=/", "beyond the target"),
            ("exec_prerun=rm -rf x", "beyond the target"),
            ("exec_postrun = x", "beyond the target"),
            ("include other.fio", "beyond the target"),
            ("include=other.fio", "beyond the target"),
            ("include\tother.fio", "beyond the target"),
            ("includeother.fio", "beyond the target"),
            ("include other=1.fio", "beyond the target"),
            ("read_iolog=x", "beyond the target"),
            ("write_iolog=x", "beyond the target"),
            ("write_lat_log=x", "writes a log"),
            ("ioengine=net", "does not work on files"),
            ("ioengine=external:./x.so", "does not work on files"),
            ("mem=mmaphuge:/mnt/x", "outside"),
            ("cgroup_weight=5", "beyond the target"),
            ("size=${SIZE}", "environment"),
            ("filename=a:b/c..d", "-"),
            ("filename=table\nioengine=libaio\nnumjobs=4", "-"),
            ("group_reporting", "-"),
        ];
        for (line, says) in rows {
            let found = Job::parse(&format!("[x]\nrw=write\n{line}\n")).complaints();
            let messages: Vec<&str> = found.iter().map(|(what, _)| what.as_str()).collect();
            match says {
                "-" => assert!(messages.is_empty(), "{line}: {messages:?}"),
                _ => {
                    assert!(
                        messages.len() == 1 && messages[0].contains(says) && messages[0].contains("line 3"),
                        "{line}: {messages:?}"
                    )
                }
            }
        }
    }

    #[test]
    fn names_that_tell_nothing_are_found() {
        for (text, says) in [
            ("[../x]\nrw=write", "[../x]"),
            ("[/x]\nrw=write", "[/x]"),
            ("[stage-1]\nrw=write", "[stage-1]"),
            ("[a/b]\nrw=write\n[a-b]\nrw=read", "two sections"),
            ("[a]\nrw=write\n[a]\nrw=read", "two sections"),
            ("[a]\ngroup_reporting\n[b]\nrw=read", "group_reporting"),
        ] {
            let found = Job::parse(text).complaints();
            assert!(found.len() == 1 && found[0].0.contains(says), "{text}: {found:?}");
        }
    }
}
