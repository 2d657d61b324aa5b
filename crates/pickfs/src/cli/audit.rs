//! `pickfs audit`: whether a result of others can be trusted, from its journal alone.

use super::{INCONCLUSIVE, Outcome, REGRESSION, Verb, journals, report};
use anyhow::{Context, Result};
use pickfs_core::journal::{Folded, fold, open_file};
use pickfs_host::analysis::Model;
use pickfs_host::audit::{
    Audited, CrossChecks, Evidence, Finding, Grade, Page, RULES, Section, as_html, as_markdown, disclosure, recomputed,
};
use pickfs_host::render::{self, Document, Options};
use pickfs_host::wording::text::{counted, wrapped};
use pickfs_system::need::find_program;
use pickfs_system::process::{argv, output_up_to};
use pickfs_system::visible::visible;
use sha2::{Digest, Sha256};
use std::io::Read;
use std::path::{Path, PathBuf};

/// What a bundle calls its journal.
pub(crate) const SHARED: &str = "journal.jsonl";

/// Of a part of what is packed: a few bytes can unpack to more than the memory holds.
const MOST_BYTES: u64 = 1 << 30;

/// Places that are named of one rule.
const MOST_PLACES: usize = 3;

/// Check a run against the rules of trusted results, and compute its verdict a second time
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Journal of the run, plain or compressed by xz, or an archive of `pickfs share`
    #[arg(default_value = "@last")]
    file: PathBuf,
    /// Journal of the same plan that was run again (`pickfs run --again`): times of simulated cells
    /// must be the same
    #[arg(long, value_name = "JOURNAL")]
    again: Option<PathBuf>,
    /// Write the page that makes the run citable, as HTML or Markdown by its name: question,
    /// answer, grade, machine, what differs from defaults
    #[arg(long, value_name = "PAGE.html|PAGE.md")]
    disclosure: Option<PathBuf>,
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs audit run-shared.tar.gz", "a bundle of others: nothing in it is executed, and root is not needed"],
        ["pickfs audit --disclosure run.html", "the newest run, and the page to publish with its figures"],
        ["pickfs audit sim.tar.gz --again mine.jsonl", "simulations of others, done here by `pickfs run --again`"],
    ];
    const ONLY_PRINTS: bool = true;

    fn run(&self) -> Outcome {
        let (journal, page) = read(&journals::named(&self.file)?)?;
        let audit = Audit::of(&journal, Path::new(SHARED), page, self.again()?);
        let audit = audit.with_context(|| self.file.display().to_string())?;
        if let Some(page) = &self.disclosure {
            let is_html = page.extension().is_some_and(|end| end == "html" || end == "htm");
            let sections = audit.disclosure();
            let text = if is_html { as_html(&sections) } else { as_markdown(&sections) };
            std::fs::write(page, text).with_context(|| format!("cannot write {}", page.display()))?;
        }
        print!("{}", audit.shown());
        Ok(match audit.grade {
            Grade::Reproduced | Grade::ByTheRules => 0,
            Grade::Broken => REGRESSION,
            Grade::Open => INCONCLUSIVE,
        })
    }
}

impl Arguments {
    fn again(&self) -> Result<Option<Folded>> {
        self.again.as_ref().map(|again| fold(&read(&journals::named(again)?)?.0[..])).transpose()
    }
}

/// A journal, and the page that lies with it.
fn read(path: &Path) -> Result<(Vec<u8>, Option<String>)> {
    if let Some(packed) = unpacked(path)? {
        return Ok(packed);
    }
    let mut journal = Vec::new();
    open_file(path)?.read_to_end(&mut journal).with_context(|| format!("cannot read {}", path.display()))?;
    Ok((journal, None))
}

/// The content of an archive by `xz` or [`super::share`]; `None` for a plain journal.
pub(crate) fn unpacked(path: &Path) -> Result<Option<(Vec<u8>, Option<String>)>> {
    // Read from its start again, which what is no file cannot be.
    if !path.is_file() {
        return Ok(None);
    }
    let mut start = Vec::new();
    open_file(path)?.take(6).read_to_end(&mut start).with_context(|| format!("cannot read {}", path.display()))?;
    let shown = std::path::absolute(path)?.display().to_string();
    // Each part is written to our pipe: nothing of an archive comes to the disk.
    let part = |name| output_up_to(&argv(["tar", "-xzO", "--force-local", "-f", &shown, "--", name]), MOST_BYTES);
    Ok(match &start[..] {
        [0x1f, 0x8b, ..] => Some((part(SHARED)?, Some(String::from_utf8_lossy(&part("report.html")?).into_owned()))),
        [0xfd, b'7', b'z', b'X', b'Z', 0] => {
            Some((output_up_to(&argv(["xz", "-dc", "--", &shown]), MOST_BYTES)?, None))
        }
        _ => None,
    })
}

/// What a journal comes to.
pub(crate) struct Audit {
    model: Model,
    findings: Vec<Finding>,
    grade: Grade,
    /// SHA-256 of the journal.
    name: String,
}

impl Audit {
    /// `name` is what the page calls the journal.
    pub(crate) fn of(journal: &[u8], name: &Path, page: Option<String>, again: Option<Folded>) -> Result<Audit> {
        let folded = fold(journal)?;
        let model = report::model(&folded, name)?;
        let evidence = Evidence::new(journal, &folded, CrossChecks { again, ..beside(journal, &model, page)? })?;
        let findings = evidence.findings();
        let grade = evidence.grade(&findings);
        let name = format!("{:x}", Sha256::digest(journal));
        Ok(Audit { model, findings, grade, name })
    }

    pub(crate) fn page(&self) -> Result<Vec<u8>> {
        report::page(&self.model)
    }

    pub(crate) fn grade(&self) -> Grade {
        self.grade
    }

    pub(crate) fn disclosure(&self) -> Vec<Section> {
        disclosure(&self.model, &Audited { findings: &self.findings, grade: self.grade, name: &self.name })
    }

    fn shown(&self) -> String {
        let Audit { findings, grade, name, .. } = self;
        let numbers = |is: fn(&Finding) -> bool| {
            let found = (1..).zip(RULES).zip(findings).filter(|(_, finding)| is(finding));
            found.map(|((number, rule), _)| format!("{number} ({})", rule.name)).collect::<Vec<_>>().join(", ")
        };
        let open = numbers(|finding| matches!(finding, Finding::Open(_)));
        let broken = numbers(|finding| matches!(finding, Finding::Broken(_)));
        let answer = match grade {
            Grade::Reproduced => "its simulated cells came out the same again, and no rule is broken".to_string(),
            Grade::ByTheRules => "all rules are kept, as far as a journal can show it".to_string(),
            Grade::Open => format!("the journal does not show rule {open}"),
            Grade::Broken if open.is_empty() => format!("rule {broken}"),
            Grade::Broken => format!("rule {broken}; the journal does not show rule {open}"),
        };
        let mut text = format!("{}: {answer}.\n\n", grade.word());
        for ((number, rule), finding) in (1..).zip(RULES).zip(findings) {
            let (word, places): (_, &[String]) = match finding {
                Finding::Kept => ("kept", &[]),
                Finding::NotAsked => ("-", &[]),
                Finding::Open(places) => ("open", places),
                Finding::Broken(places) => ("BROKEN", places),
            };
            text += &format!("{number:>3}  {:<10}  {word:<6}  {}\n", rule.name, rule.says);
            let more = places.len().saturating_sub(MOST_PLACES);
            let shown = places.iter().take(MOST_PLACES).map(|place| visible(place));
            let more = (more > 0).then(|| counted(more, "further place"));
            let indent = " ".repeat(25);
            shown.chain(more).for_each(|place| text += &(wrapped(&indent, &place, report::width()) + "\n"));
        }
        text + &format!("\nsha256 of the journal: {name}\ndocs/rules.md describes how each rule is checked.\n")
    }
}

fn beside(journal: &[u8], model: &Model, page: Option<String>) -> Result<CrossChecks> {
    let json = render::written("json", Document::Run(model), &Options::default())?;
    let page = page.map(|shown| -> Result<Page> {
        let made = String::from_utf8_lossy(&report::page(model)?).into_owned();
        let sentences = model.headlines();
        Ok(Page { shown, made, sentences })
    });
    Ok(CrossChecks {
        report: serde_json::from_slice(&json).context("the report is no JSON")?,
        anew: find_program("python3").map(|_| recomputed(journal)).transpose()?,
        page: page.transpose()?,
        again: None,
    })
}
