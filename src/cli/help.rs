//! `pickfs help`: a verb's options, or one of the topics that no verb covers. The man page is made of the same words.

use super::{Cli, Outcome};
use anyhow::bail;
use clap::CommandFactory;
use clap_mangen::roff::{Roff, bold, roman};
use std::fmt::Write;

#[derive(clap::Args)]
pub struct Arguments {
    /// A verb, or a topic; all of them unless said
    topic: Option<String>,
    /// Print the manual page, in roff, of pickfs or of the verb
    #[arg(long)]
    man: bool,
}

struct Topic {
    name: &'static str,
    about: &'static str,
    text: &'static str,
}

/// Sorted by name.
const TOPICS: &[Topic] = &[
    Topic { name: "cold", about: "what a cold start is, and how it is proved", text: include_str!("help/cold.txt") },
    Topic { name: "exit-codes", about: "what the exit codes mean", text: include_str!("help/exit-codes.txt") },
    Topic {
        name: "journals",
        about: "where results are kept, and how a run is taken up",
        text: include_str!("help/journals.txt"),
    },
    Topic { name: "plans", about: "how a plan file is written", text: include_str!("help/plans.txt") },
    Topic {
        name: "safety",
        about: "what is erased and what is not, and what is left",
        text: include_str!("help/safety.txt"),
    },
    Topic {
        name: "verdicts",
        about: "how targets are compared, and what the marks mean",
        text: include_str!("help/verdicts.txt"),
    },
];

pub fn main(arguments: &Arguments) -> Outcome {
    let text = match (&arguments.topic, arguments.man) {
        (topic, true) => manual(topic.as_deref())?,
        (None, false) => overview(),
        (Some(topic), false) => explained(topic)?,
    };
    print!("{text}");
    Ok(0)
}

fn overview() -> String {
    let mut text = Cli::command().render_long_help().to_string();
    let _ = writeln!(text, "\nTopics, for `pickfs help TOPIC`:");
    for topic in TOPICS {
        let _ = writeln!(text, "  {:<12} {}", topic.name, topic.about);
    }
    text
}

/// A verb's own help before a topic's.
fn explained(topic: &str) -> anyhow::Result<String> {
    if let Some(verb) = Cli::command().find_subcommand_mut(topic) {
        let mut verb = verb.clone().bin_name(format!("pickfs {topic}"));
        return Ok(verb.render_long_help().to_string());
    }
    match TOPICS.iter().find(|known| known.name == topic) {
        Some(known) => Ok(known.text.to_string()),
        None => bail!("no verb and no topic `{}`; `pickfs help` lists both", topic.escape_debug()),
    }
}

/// Of pickfs with its topics, or of one verb.
fn manual(verb: Option<&str>) -> anyhow::Result<String> {
    let mut command = Cli::command();
    command.build();
    let mut page = Vec::new();
    match verb {
        None => {
            clap_mangen::Man::new(command).render(&mut page)?;
            topics().to_writer(&mut page)?;
        }
        Some(verb) => match command.find_subcommand(verb) {
            Some(found) => clap_mangen::Man::new(found.clone()).title(format!("pickfs-{verb}")).render(&mut page)?,
            None => bail!("no verb `{}`; `pickfs help` lists them", verb.escape_debug()),
        },
    }
    Ok(String::from_utf8(page)?)
}

/// Each as a section, with its lines as they are.
fn topics() -> Roff {
    let mut roff = Roff::default();
    for topic in TOPICS {
        roff.control("SH", [topic.name.to_uppercase().as_str()]);
        roff.text([bold(topic.about)]);
        roff.control("PP", []);
        roff.control("nf", []);
        for line in topic.text.lines() {
            roff.text([roman(line)]);
        }
        roff.control("fi", []);
    }
    roff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_and_topic_is_explained_and_in_the_manual() {
        let page = manual(None).unwrap();
        assert!(TOPICS.windows(2).all(|pair| pair[0].name < pair[1].name));
        for topic in TOPICS {
            assert!(overview().contains(topic.about) && explained(topic.name).unwrap() == topic.text);
            assert!(page.contains(&format!(".SH {}", topic.name.to_uppercase())), "{}", topic.name);
            assert!(topic.text.lines().all(|line| line.chars().count() <= 80), "{}", topic.name);
            assert!(Cli::command().find_subcommand(topic.name).is_none(), "{} is a verb", topic.name);
        }
        let verbs: Vec<String> = Cli::command().get_subcommands().map(|verb| verb.get_name().to_string()).collect();
        for verb in verbs {
            assert!(explained(&verb).unwrap().contains("Usage: pickfs"), "{verb}");
            assert!(manual(Some(&verb)).unwrap().contains(".TH"), "{verb}");
        }
        assert!(explained("nonsense").unwrap_err().to_string().contains("`pickfs help`"));
    }
}
