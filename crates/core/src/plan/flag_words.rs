//! Flags as they are typed, for a command line on another machine, which completes them by what it finds there.

use super::PlanFlags;
use std::fmt::Display;
use std::path::{Path, PathBuf};

impl PlanFlags {
    /// As arguments. An error names a path that another machine would look for in another folder.
    pub fn words(&self) -> Result<Vec<String>, String> {
        let PlanFlags { fs, on, memory, sim, jobs, age, fill, source, like, scale, size, workload, trace, .. } = self;
        let PlanFlags { rounds, precision, budget, require, seed, job, .. } = self;
        let mut words = Words(Vec::new());
        let lists = [("fs", fs), ("sim", sim), ("age", age), ("fill", fill), ("require", require)];
        for (flag, all) in lists.into_iter().filter(|(_, all)| !all.is_empty()) {
            words.add(flag, Some(all.join(",")));
        }
        for folder in on {
            words.path("on", Some(folder))?;
        }
        words.path("source", source.as_ref())?;
        words.path("job", job.as_ref())?;
        let is_file = |text: &&String| text.contains('/') || text.ends_with(".toml") || text.ends_with(".pktrace");
        for (flag, text) in [("like", like.as_ref()), ("trace", trace.as_ref()), ("sim", sim.first())] {
            absolute(flag, text.filter(is_file).map(Path::new))?;
        }
        words.add("like", like.as_ref());
        words.add("trace", trace.as_ref());
        words.0.extend(memory.then(|| "--memory".to_string()));
        words.add("jobs", jobs.as_ref());
        words.add("scale", scale.as_ref());
        words.add("size", size.as_ref());
        words.add("workload", workload.as_ref());
        words.add("rounds", rounds.as_ref());
        words.add("precision", precision.as_ref());
        words.add("budget", budget.as_ref());
        words.add("seed", seed.as_ref());
        Ok(words.0)
    }
}

struct Words(Vec<String>);

impl Words {
    /// With `=`: a value may begin with a dash.
    fn add(&mut self, flag: &str, value: Option<impl Display>) {
        self.0.extend(value.map(|value| format!("--{flag}={value}")));
    }

    fn path(&mut self, flag: &str, path: Option<&PathBuf>) -> Result<(), String> {
        absolute(flag, path.map(PathBuf::as_path))?;
        self.add(flag, path.map(|path| path.display()));
        Ok(())
    }
}

fn absolute(flag: &str, path: Option<&Path>) -> Result<(), String> {
    let Some(path) = path.filter(|path| !path.is_absolute() || path.to_str().is_none()) else { return Ok(()) };
    let shown = path.display();
    Err(format!("--{flag} {shown} is looked for on the other machine: give its whole path there, in UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::PlanArgs;
    use clap::Parser;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: PlanArgs,
    }

    fn flags(line: &[impl AsRef<str>]) -> PlanFlags {
        Line::try_parse_from(["pickfs"].into_iter().chain(line.iter().map(AsRef::as_ref)))
            .expect("a line")
            .arguments
            .flags
    }

    #[test]
    fn words_mean_the_flags_that_they_are_made_of() {
        let lines: [&[&str]; 6] = [
            &["--fs", "ext4,btrfs:compress=zstd:1+noatime", "--on", "/a b", "--on", "/c", "--size", "3GiB"],
            &["--memory", "--like", "maildir", "--scale", "-0.5", "--budget", "1h", "--require", "a,b"],
            &["--sim", "nvme", "--jobs", "3", "--age", "churn 5x,none", "--fill", "0%,80%", "--rounds", "4"],
            &["--source", "/src", "--precision", "2%", "--seed", "18446744073709551615", "--workload", "tree"],
            &["--trace", "/t.pktrace"],
            &["--job", "/j.fio"],
        ];
        // All flags occur, so none is forgotten.
        let all = lines.concat().join(" ");
        for flag in super::super::flag_names() {
            assert!(all.contains(&format!("--{flag}")), "{flag}");
        }
        for line in lines {
            let flags = flags(line);
            assert_eq!(self::flags(&flags.words().expect("whole paths")), flags, "{line:?}");
        }
        for line in [
            ["--on", "a"],
            ["--source", "~/x"],
            ["--like", "a.toml"],
            ["--trace", "./t"],
            ["--job", "j"],
            ["--sim", "./d"],
        ] {
            let refused = flags(&line).words().expect_err("a path of this folder");
            assert!(refused.contains(line[0]) && refused.contains("whole path"), "{refused}");
        }
    }
}
