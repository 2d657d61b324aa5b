//! A file overwritten again and again for a time, as a log or a recording is: how fast it goes on
//! once caches are full and the first fine seconds are over.

use super::content::{Pool, Ring};
use super::settings::{Duration, Size, settings};
use super::{Description, Workload, described};
use crate::stage::{SHORTEST_TIME, Stage};
use anyhow::Result;
use pickfs_core::plan::{Objection, Settings};
use pickfs_system::units::show_duration;

pub(crate) struct Stream;

settings! {
    Streaming {
        time: Duration = "100s",
            "how long; doubled up to three times where the rate is not steady, as far as `cell` allows";
        size: Size = "256MiB", "size of the file; from its end it goes on at its start";
        sync: Size = "4MiB", "fdatasync whenever so much is written, in whole writes of 256 KiB";
    }
}

/// Bytes of each class of content that blocks are cut from.
const OF_EACH_CLASS: usize = 8 << 20;

impl Workload for Stream {
    fn description(&self) -> &'static Description {
        described!("stream.toml", Streaming::ROWS)
    }

    fn bytes(&self, settings: &Settings) -> Option<u64> {
        Some(Ring::in_blocks(Streaming::of(settings).size) * Ring::BLOCK as u64)
    }

    fn seconds(&self, settings: &Settings) -> u64 {
        self.description().seconds.saturating_add(Streaming::of(settings).time.as_secs())
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let time = Streaming::of(settings).time;
        let [shown, least] = [time, SHORTEST_TIME].map(|time| show_duration(time.as_nanos() as f64));
        let message = format!("in {shown} no rate can be seen to be steady");
        let too_short =
            (time < SHORTEST_TIME).then(|| Objection::new("time", message, &format!("give {least} or more")));
        too_short.into_iter().collect()
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let Streaming { time, size, sync } = Streaming::of(settings);
        let pool = stage.check("making the content", || Ok(Pool::new(1, OF_EACH_CLASS)))?;
        let mut ring = Ring::new(&stage.root().join("file"), &pool, size)?;
        let write = |ring: &mut Ring, blocks| {
            (0..blocks).try_for_each(|_| ring.write())?;
            ring.sync()?;
            Ok(blocks * Ring::BLOCK as u64)
        };
        stage.check("writing the file for the first time", || write(&mut ring, Ring::in_blocks(size)).map(drop))?;
        stage.phase("overwrite-1GiB", |p| p.for_a_time(time, || write(&mut ring, Ring::in_blocks(sync))))?;
        stage.check("verifying what was written last", || ring.verify())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_shows_nothing_is_refused() {
        let objections = |seconds: u64| {
            let settings = Settings([("time".to_string(), (seconds * 1_000_000_000).into())].into());
            Stream.objections(&settings).len()
        };
        assert_eq!([objections(30), objections(99), objections(100), objections(900)], [1, 1, 0, 0]);
    }
}
