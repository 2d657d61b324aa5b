//! `pickfs help`: a verb's options, or one of the topics that no verb covers. The man page is made
//! of the same words.

use super::{Exit, Outcome, Verb, command, did_you_mean, list, purpose};
use clap_mangen::roff::{Roff, bold, roman};
use pickfs_core::plan::nearest;
use std::fmt::Write;

/// Explain a verb or a topic, or print a manual page
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A verb with the words behind it, or a topic; by default all of them
    topic: Vec<String>,
    /// Print the manual page, in roff, of pickfs or of the verb
    #[arg(long)]
    man: bool,
}

struct Topic {
    name: &'static str,
    about: &'static str,
    text: &'static str,
}

macro_rules! topics {
    ($($name:literal: $about:literal;)*) => {
        &[$(Topic { name: $name, about: $about, text: include_str!(concat!("help/", $name, ".txt")) }),*]
    };
}

/// Sorted by name.
const TOPICS: &[Topic] = topics! {
    "cold": "what a cold start is, and how it is proved";
    "exit-codes": "what the exit codes mean";
    "journals": "where results are kept, and how a run is resumed";
    "keys": "every key of a plan";
    "plans": "how a plan file is written";
    "replay": "how your own program is recorded and replayed";
    "safety": "what a run erases, and what it leaves behind";
    "verdicts": "how targets are compared, and what the marks mean";
};

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] =
        &[["pickfs help run", "a verb's options"], ["pickfs help verdicts", "how targets are compared"]];
    const ONLY_PRINTS: bool = true;

    fn run(&self) -> Outcome {
        let text = match (self.topic.as_slice(), self.man) {
            (topic, true) => manual(topic)?,
            ([], false) => overview(),
            (topic, false) => explained(topic)?,
        };
        print!("{text}");
        Ok(0)
    }
}

fn overview() -> String {
    let mut text = command().render_long_help().to_string();
    let _ = writeln!(text, "\nTopics, for `pickfs help TOPIC`:");
    for topic in TOPICS {
        let _ = writeln!(text, "  {:<12} {}", topic.name, topic.about);
    }
    text
}

/// A verb's own help before a topic's.
fn explained(words: &[String]) -> anyhow::Result<String> {
    if let Some(mut verb) = verb(words) {
        return Ok(verb.render_long_help().to_string());
    }
    let topic = words.join(" ");
    match TOPICS.iter().find(|known| known.name == topic) {
        Some(known) => Ok(known.text.to_string()),
        None => {
            let near = did_you_mean("pickfs help ", nearest(&topic, names()));
            let found = if near.is_empty() { that_mention(&topic.to_lowercase()) } else { Vec::new() };
            let topic = topic.escape_debug();
            if found.is_empty() {
                Err(Exit::usage(format!("no verb and no topic `{topic}`; {near}`pickfs help` lists both")))
            } else {
                Ok(format!("No verb and no topic is called `{topic}`. It is in:\n{}", shown(&found)))
            }
        }
    }
}

/// More are no help.
const MOST_FOUND: usize = 12;

fn shown(found: &[[String; 2]]) -> String {
    let rows: Vec<[&str; 2]> = found.iter().take(MOST_FOUND).map(|[command, about]| [&**command, &**about]).collect();
    let more = found.len().saturating_sub(MOST_FOUND);
    let more = if more > 0 { format!("  and {more} more\n") } else { String::new() };
    super::examples(&rows) + &more
}

/// The command that shows more, and what is there, of all that has the word: answers first, then
/// lists, verbs and topics.
fn that_mention(word: &str) -> Vec<[String; 2]> {
    if word.len() < 3 {
        return Vec::new();
    }
    let has = |text: &str| text.to_lowercase().contains(word);
    let whole = command();
    let verbs = whole.get_subcommands().filter(|verb| !verb.is_hide_set()).filter_map(|verb| {
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        let help = verb.clone().render_long_help().to_string();
        let line = help.lines().find(|line| has(line))?.trim().to_string();
        Some([format!("pickfs help {}", verb.get_name()), if has(&about) { about } else { line }])
    });
    let topics = TOPICS.iter().filter_map(|topic| {
        let line = topic.text.lines().find(|line| has(line))?;
        Some([format!("pickfs help {}", topic.name), line.trim().to_string()])
    });
    let answers = purpose::that_mention(word).into_iter().chain(questions().filter(|[_, question]| has(question)));
    answers.chain(list::that_mention(word)).chain(topics).chain(verbs).collect()
}

/// Each question of the guide, behind the first command that answers it.
fn questions() -> impl Iterator<Item = [String; 2]> {
    let parts = include_str!("../../../../docs/guide.md").split("\n### ").skip(1);
    parts.filter_map(|part| {
        let (question, rest) = part.split_once('\n')?;
        let commands = rest.lines().filter_map(|line| line.strip_prefix("    "));
        let command = commands.map(str::trim).find(|line| line.trim_start_matches("sudo ").starts_with("pickfs "))?;
        Some([command.to_string(), question.replace('`', "")])
    })
}

/// Names of verbs and topics.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let verbs = super::VERBS.iter().filter(|verb| !verb.hidden).map(|verb| verb.name);
    verbs.chain(TOPICS.iter().map(|topic| topic.name))
}

/// The command after `guest`, for `guest build`; pickfs itself without words.
fn verb(words: &[String]) -> Option<clap::Command> {
    let mut whole = command();
    whole.build();
    words.iter().try_fold(whole, |verb, word| verb.find_subcommand(word).cloned())
}

/// The manual page of pickfs with its topics, or of a verb.
fn manual(words: &[String]) -> anyhow::Result<String> {
    let Some(verb) = verb(words) else {
        return Err(Exit::usage(format!("no verb `{}`; `pickfs help` lists them", words.join(" ").escape_debug())));
    };
    let title = [&["pickfs".to_string()], words].concat().join("-");
    let examples = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
    let others: Vec<String> = verb.get_subcommands().map(|below| format!("{title}-{}(1)", below.get_name())).collect();
    let mut page = Vec::new();
    // What stands after the help has its own section here.
    clap_mangen::Man::new(verb.after_help(clap::builder::Resettable::Reset)).title(title).render(&mut page)?;
    let mut roff = Roff::default();
    let (_, examples) = examples.split_once('\n').unwrap_or_default();
    section(&mut roff, "EXAMPLES", "", examples);
    if words.is_empty() {
        TOPICS.iter().for_each(|topic| section(&mut roff, &topic.name.to_uppercase(), topic.about, topic.text));
    }
    section(&mut roff, "EXIT STATUS", "", include_str!("help/exit-codes.txt"));
    section(&mut roff, "FILES", "", include_str!("help/files.txt"));
    section(&mut roff, "ENVIRONMENT", "", include_str!("help/environment.txt"));
    let parent = (!words.is_empty()).then(|| "pickfs(1)".to_string());
    let related = parent.into_iter().chain(others).chain(["fio(1)", "mkfs(8)", "mount(8)"].map(String::from));
    section(&mut roff, "SEE ALSO", "", &related.collect::<Vec<_>>().join(", "));
    roff.to_writer(&mut page)?;
    Ok(String::from_utf8(page)?)
}

/// With unchanged lines; nothing for an empty text.
fn section(roff: &mut Roff, name: &str, about: &str, text: &str) {
    if text.is_empty() {
        return;
    }
    roff.control("SH", [name]);
    if !about.is_empty() {
        roff.text([bold(about)]);
    }
    roff.control("PP", []);
    roff.control("nf", []);
    for line in text.lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_core::plan::{KEYS, KeyTable, page, page_of, recipe};

    fn head(table: &KeyTable) -> &'static str {
        if table.head.is_empty() { "The plan" } else { table.head }
    }

    /// What `pickfs help keys` prints.
    fn keys_as_text() -> String {
        let mut text = String::new();
        for table in KEYS {
            let _ = writeln!(text, "{}: {}\n", head(table), table.about);
            for key in table.keys {
                let _ = writeln!(text, "  {} = {}", key.name, key.example);
                for line in textwrap::wrap(&key.about(), 72) {
                    let _ = writeln!(text, "      {line}");
                }
            }
            text.push('\n');
        }
        text.push_str("Settings of file systems, backings, layers, workloads and executors:\n`pickfs list fs`, `list backings` and so on.\n");
        text
    }

    /// docs/recipes.md, of which people write what stands above the keys.
    fn recipe_page(now: &str) -> String {
        let (above, _) = now.split_once(LIST_OF_RECIPES).expect("the page has its keys");
        format!("{above}{LIST_OF_RECIPES}{}", page_of("###", "The recipe", recipe::tables()))
    }

    const LIST_OF_RECIPES: &str = "Made of the list that recipes are checked by (`make schema`).\n";

    #[test]
    fn help_and_page_of_keys_are_what_the_list_says() {
        let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let recipes = recipe_page(&std::fs::read_to_string(root.join("docs/recipes.md")).unwrap());
        for (file, wanted) in [
            ("crates/pickfs/src/cli/help/keys.txt", keys_as_text()),
            ("docs/plan.md", page()),
            ("docs/recipes.md", recipes),
        ] {
            if std::env::var_os("PICKFS_WRITE_SCHEMA").is_some() {
                std::fs::write(root.join(file), &wanted).unwrap();
            }
            assert_eq!(std::fs::read_to_string(root.join(file)).unwrap_or_default(), wanted, "{file}: `make schema`");
        }
    }

    /// Lines of the documents that are commands, without comments and without what a shell does
    /// with them.
    fn commands(page: &str) -> impl Iterator<Item = Vec<String>> {
        let lines = page.lines().filter_map(|line| line.strip_prefix("    "));
        let commands =
            lines.filter_map(|line| line.trim_start_matches("$ ").trim_start_matches("sudo ").strip_prefix("pickfs "));
        let alone = |command: &str| {
            let ends = ["  ", " #", " |", " >", " &&", ";"].iter().filter_map(|sign| command.find(sign));
            command[..ends.min().unwrap_or(command.len())].to_string()
        };
        let words = move |command: &str| shell_words::split(&alone(command)).expect("quotes are closed");
        // `PLAN.toml ...` stands for words that a reader has.
        commands.map(words).filter(|words| !words.iter().any(|word| word.contains("...") || word == "VERB"))
    }

    /// What a reader copies is understood, wherever it stands.
    #[test]
    fn commands_in_documents_are_understood() {
        let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
        let pages =
            docs.chain([root.join("README.md")]).filter(|path| path.extension().is_some_and(|kind| kind == "md"));
        let (mut count, mut wrong) = (0, Vec::new());
        for path in pages {
            for words in commands(&std::fs::read_to_string(&path).unwrap()) {
                count += 1;
                let found = command().try_get_matches_from([&["pickfs".to_string()], &words[..]].concat());
                if let Err(error) = found.map_err(|error| error.to_string()) {
                    wrong.push(format!("{}: {words:?}: {error}", path.display()));
                }
            }
        }
        assert!(wrong.is_empty() && count > 100, "of {count} commands: {}", wrong.join("\n"));
    }

    /// In the help and in the manual page.
    #[test]
    fn every_verb_and_what_is_below_it_has_an_example() {
        let mut names: Vec<Vec<String>> = Vec::new();
        for verb in command().get_subcommands().filter(|verb| !verb.is_hide_set()) {
            names.push(vec![verb.get_name().into()]);
            let below = verb.get_subcommands().filter(|below| !below.is_hide_set());
            names.extend(below.map(|below| vec![verb.get_name().to_string(), below.get_name().into()]));
        }
        for name in names {
            let wanted = format!("pickfs {}", name.join(" "));
            let help = explained(&name).unwrap();
            let (_, examples) = help.split_once("Examples:").unwrap_or_default();
            assert!(examples.lines().any(|line| line.contains(&wanted)), "{name:?}: {help}");
            let page = manual(&name).unwrap();
            assert!(page.contains(".SH EXAMPLES\n"), "{name:?}: {page}");
        }
    }

    /// Each has its manual page in the package.
    #[test]
    fn the_package_has_a_page_for_each_verb() {
        let recipe = include_str!("../../../../packaging/deb");
        let listed = recipe.lines().find_map(|line| line.strip_prefix("for verb in ")?.strip_suffix("; do")).unwrap();
        let mut listed: Vec<&str> = listed.split(' ').collect();
        let whole = command();
        let mut verbs: Vec<&str> =
            whole.get_subcommands().filter(|verb| !verb.is_hide_set()).map(|verb| verb.get_name()).collect();
        listed.sort_unstable();
        verbs.sort_unstable();
        assert_eq!(listed, verbs);
    }

    #[test]
    fn every_verb_and_topic_is_explained_and_in_the_manual() {
        let page = manual(&[]).unwrap();
        assert!(TOPICS.windows(2).all(|pair| pair[0].name < pair[1].name));
        for topic in TOPICS {
            assert!(overview().contains(topic.about) && explained(&[topic.name.into()]).unwrap() == topic.text);
            assert!(page.contains(&format!(".SH {}", topic.name.to_uppercase())), "{}", topic.name);
            assert!(topic.text.lines().all(|line| line.chars().count() <= 80), "{}", topic.name);
            assert!(command().find_subcommand(topic.name).is_none(), "{} is a verb", topic.name);
        }
        let verbs: Vec<String> = command().get_subcommands().map(|verb| verb.get_name().to_string()).collect();
        for verb in verbs {
            let verb = [verb];
            assert!(explained(&verb).unwrap().contains("Usage: pickfs"), "{verb:?}");
            let page = manual(&verb).unwrap();
            for section in [".TH", ".SH \"EXIT STATUS\"", ".SH FILES", ".SH ENVIRONMENT", ".SH \"SEE ALSO\""] {
                assert!(page.contains(section), "{verb:?}: no {section}");
            }
            assert!(verb[0] != "run" || page.contains("sudo pickfs run \\-\\-fs"), "{page}");
        }
        for (word, command) in
            [("raspberry", "sudo pickfs run --fs"), ("rebuild", "pickfs plan"), ("pandas", "pickfs report")]
        {
            assert!(
                explained(&[word.into()]).unwrap().contains(command),
                "{word}: {}",
                explained(&[word.into()]).unwrap()
            );
        }
        assert!(questions().count() > 30);
        let found = explained(&["fsync".into()]).unwrap();
        assert!(found.contains("pickfs for logs") && found.contains("pickfs list workloads"), "{found}");
        assert!(found.lines().all(|line| line.chars().count() <= 90) && found.lines().count() < 40, "{found}");
        assert!(explained(&["verdict".into()]).unwrap_err().to_string().contains("help verdicts`?"));
        assert!(explained(&["nonsense".into()]).unwrap_err().to_string().contains("`pickfs help`"));
        let below = ["guest", "build"].map(String::from);
        assert!(explained(&below).unwrap().contains("Usage: pickfs guest build"));
        assert!(manual(&below).unwrap().contains(".TH pickfs-guest-build"));
    }
}
