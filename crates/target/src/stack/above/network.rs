//! The network between the client and the server of a share, on this machine: the loopback device,
//! shaped by the kernel (netem).

use super::*;
use pickfs_system::units::parse_duration;

pub(super) const DELAY: Setting =
    word("delay", "how long each packet waits, such as \"1ms\": a request and its answer wait twice");
pub(super) const LOSS: Setting = word("loss", "the share of packets that are lost, such as \"0.1%\"");
pub(super) const RATE: Setting = word("rate", "what passes in each second, such as \"1gbit\"");
pub(super) const SETTINGS: [Setting; 3] = [DELAY, LOSS, RATE];

/// A text, as netem takes it: so it is in the name of its target.
const fn word(name: &'static str, about: &'static str) -> Setting {
    setting(name, SettingKind::Text, None, about)
}

/// By the word that netem has for each.
fn shaped(settings: &Settings) -> Vec<&str> {
    let given = SETTINGS.iter().filter_map(|row| Some([row.name, settings.text(row.name)?]));
    given.flatten().collect()
}

pub(super) fn is_shaped(settings: &Settings) -> bool {
    !shaped(settings).is_empty()
}

pub(super) fn needs(settings: &Settings) -> &'static [Need] {
    if is_shaped(settings) { &[GUEST, Need::Program { name: "tc", package: "iproute2" }] } else { &[] }
}

/// Why layers above cannot be on one target: a machine has one loopback device. An sshfs that is
/// not shaped has a pipe.
pub(super) fn clash(layers: &[Chosen]) -> Option<String> {
    let is_by_tcp = |chosen: &Chosen| find(&chosen.name).is_some_and(|layer| layer.needs.contains(&IP));
    let users: Vec<&Chosen> = layers.iter().filter(|chosen| is_shaped(&chosen.settings) || is_by_tcp(chosen)).collect();
    let shapes = users.iter().any(|chosen| is_shaped(&chosen.settings));
    let names: Vec<&str> = users.iter().map(|chosen| chosen.name.as_str()).collect();
    (shapes && names.len() > 1).then(|| {
        format!(
            "{} share one network, the loopback device of the guest, which is shaped for one of them",
            names.join(" and ")
        )
    })
}

/// For a server that is reached by TCP.
pub(super) const IP: Need = Need::Program { name: "ip", package: "iproute2" };

/// Of what has no system that would have switched it on, as a guest. More packets than a window of
/// TCP has, as netem's queue of 1000 would lose some.
pub(super) fn steps(seat: &Seat) -> Vec<Step> {
    let up = Step::run("switch the loopback device on", ["ip", "link", "set", "lo", "up"]);
    let words = ["tc", "qdisc", "add", "dev", "lo", "root", "netem", "limit", "100000"];
    let shape = Step::run("shape the network", words.into_iter().chain(shaped(&seat.settings)));
    let shape = is_shaped(&seat.settings).then(|| shape.undo(NETWORK.of(&*seat.name)));
    std::iter::once(up).chain(shape).collect()
}

pub(in crate::stack) const NETWORK: &TakeDown =
    &TakeDown { word: "clear_network", named: Named::ByCell, removals: |_| CLEARS.map(once_in_a_guest).into() };

/// The device has its default again once what it was given is deleted. Where it was given nothing
/// there is nothing to delete, so it is given something first.
const CLEARS: [&[&str]; 2] =
    [&["tc", "qdisc", "replace", "dev", "lo", "root", "noqueue"], &["tc", "qdisc", "del", "dev", "lo", "root"]];

/// What it is, as a fact; nothing is said where it is as ever.
pub(super) fn shown() -> (&'static str, Argv) {
    ("network", argv(["tc", "qdisc", "show", "dev", "lo"]))
}

/// netem rounds what it is given, so only its being there is asked for.
pub(super) fn mismatch(settings: &Settings, shown: &str) -> Option<String> {
    let wrong = is_shaped(settings) != shown.contains("qdisc netem");
    wrong.then(|| format!("asked for the network {:?}, the kernel shows {shown}", shaped(settings)))
}

pub(super) fn objections(settings: &Settings) -> Vec<Objection> {
    let number = |text: &str, unit: &str| {
        text.strip_suffix(unit).is_some_and(|number| number.parse::<f64>().is_ok_and(|number| number > 0.0))
    };
    let is_right = |name: &str, text: &str| match name {
        "delay" => parse_duration(text).is_ok_and(|ns| ns > 0),
        "loss" => number(text, "%"),
        _ => ["kbit", "mbit", "gbit"].iter().any(|unit| number(text, unit)),
    };
    let wrong = SETTINGS.iter().filter(|row| settings.text(row.name).is_some_and(|text| !is_right(row.name, text)));
    wrong.map(|row| Objection::new(row.name, format!("`{}` is not understood", row.name), row.about)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::example::set;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_network_is_shaped_before_its_server_starts_and_is_cleared_after_it_has_ended() {
        let said = set("nfs", json!({"delay": "1ms", "rate": "1gbit"}));
        let shape = "run tc qdisc add dev lo root netem limit 100000 delay 1ms rate 1gbit; back: clear network pickfsC";
        assert_eq!(said[..2], ["run ip link set lo up".to_string(), shape.to_string()]);
        assert!(!set("nfs", json!({})).iter().any(|line| line.contains("tc qdisc")));
    }

    #[test]
    fn layers_that_share_a_network_cannot_shape_it() {
        let chosen = |(name, settings): &(&str, serde_json::Value)| Chosen {
            name: name.to_string(),
            settings: Settings(serde_json::from_value(settings.clone()).expect("settings")),
        };
        let (slow, usual) = (json!({"delay": "1ms"}), json!({}));
        for (layers, wanted) in [
            (vec![("nfs", slow.clone()), ("sshfs", slow.clone())], Some("nfs and sshfs share one network")),
            (vec![("9p", usual.clone()), ("sshfs", slow.clone())], Some("9p and sshfs share one network")),
            (vec![("nfs", slow.clone()), ("sshfs", usual.clone())], None),
            (vec![("nfs", slow.clone()), ("bindfs", usual.clone())], None),
            (vec![("nfs", usual.clone()), ("sshfs", usual)], None),
            (vec![("sshfs", slow)], None),
        ] {
            let found = clash(&layers.iter().map(chosen).collect::<Vec<_>>());
            assert_eq!(found.is_some(), wanted.is_some(), "{layers:?}");
            assert!(found.unwrap_or_default().starts_with(wanted.unwrap_or_default()), "{layers:?}");
        }
    }

    #[test]
    fn what_netem_cannot_take_is_refused_and_another_network_is_a_mismatch() {
        let settings = |name: &str, text: &str| Settings([(name.to_string(), json!(text))].into());
        for (name, text, wrong) in [
            ("delay", "1ms", 0),
            ("delay", "0s", 1),
            ("delay", "1", 1),
            ("loss", "0.1%", 0),
            ("loss", "0.1", 1),
            ("rate", "1.5gbit", 0),
            ("rate", "1 lo", 1),
            ("rate", "-1gbit", 1),
        ] {
            assert_eq!(objections(&settings(name, text)).len(), wrong, "{name} {text}");
        }
        let shown = "qdisc netem 8001: root refcnt 2 limit 100000 delay 1ms";
        assert!(
            mismatch(&settings("delay", "1ms"), shown).is_none() && mismatch(&settings("delay", "1ms"), "").is_some()
        );
        assert!(mismatch(&Settings::default(), shown).is_some() && mismatch(&Settings::default(), "").is_none());
    }
}
