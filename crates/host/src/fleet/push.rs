//! Journals brought to a store on another machine.

use super::message::Answer;
use super::{Ssh, checked_folder, checked_host, hash};
use anyhow::{Context, Result, bail};
use pickfs_system::visible::visible_line;

/// A store on another machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FarStore<'a> {
    host: &'a str,
    folder: &'a str,
}

impl<'a> FarStore<'a> {
    /// The store named by `HOST:FOLDER`. `None` where it is a folder of this machine, which is
    /// decided as scp does: by a `/` before the first `:`, or nothing before it.
    pub fn named(text: &'a str) -> Result<Option<FarStore<'a>>> {
        let Some((host, folder)) = text.split_once(':').filter(|(host, _)| !host.is_empty() && !host.contains('/'))
        else {
            return Ok(None);
        };
        Ok(Some(FarStore { host: checked_host(host)?, folder: checked_folder(folder)? }))
    }

    /// Brings this program there, unless it is there.
    pub fn reach(&self, ssh: &Ssh) -> Result<()> {
        ssh.install(self.host)
    }

    /// Brings a journal there, of which these are the whole lines; false where the store had it.
    pub fn push(&self, ssh: &Ssh, journal: Vec<u8>) -> Result<bool> {
        let host = self.host;
        let said = ssh.ask(host, &["take", self.folder, &hash(&journal)], journal);
        let said = said.with_context(|| format!("cannot push to {host}"))?;
        match serde_json::from_str(said.trim()) {
            Ok(Answer::New) => Ok(true),
            Ok(Answer::Known) => Ok(false),
            Ok(Answer::Refused(why)) => bail!("{host}: {}", visible_line(&why)),
            Err(_) => bail!("{host} sent an answer that cannot be read: {}", visible_line(said.trim())),
        }
    }
}

/// Prints what came of a journal, on the far side.
pub fn answer(answer: &Answer) -> Result<()> {
    println!("{}", serde_json::to_string(answer)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_far_is_decided_as_scp_does() {
        for near in ["runs", "/srv/a:b", "./a:b", "a/b:c", ":a", ""] {
            assert_eq!(FarStore::named(near).unwrap(), None, "{near}");
        }
        let far = FarStore::named("ann@m1:/srv/runs").unwrap();
        assert_eq!(far, Some(FarStore { host: "ann@m1", folder: "/srv/runs" }));
        for refused in ["-oProxyCommand=x:runs", "m 1:runs", "m\n1:runs", "m\u{1b}:runs"] {
            assert!(FarStore::named(refused).unwrap_err().to_string().contains("is no host"), "{refused}");
        }
        for refused in ["m1:", "m1:-x", "m1:a b", "m1:a;b", "m1:$(a)", "m1:a\nb", "m1:~/a", "http://m1:8080"] {
            assert!(FarStore::named(refused).unwrap_err().to_string().contains("the folder"), "{refused}");
        }
    }
}
