//! What `pickfs run` says while it goes on: as JSON for programs, as lines where there is no
//! terminal.

use crate::common::{Lab, not_run, unable};
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Stdio};

const PLAN: &str = "duplicate = false\nbacking = { memory = \"64MiB\" }\n[[target]]\nfs = \"ext4\"\n[[target]]\nname = \"small\"\nfs = \"ext4\"\nmkfs = [\"-b\", \"1024\"]\n[[work]]\nworkload = \"meta.ok\"\n[stop]\nrounds = 3\n";

/// Each line is an object of docs/progress.md, which names each event and each of its fields.
#[test]
fn json_has_an_object_for_each_moment() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    lab.write_plan(PLAN);
    let said = lab.run(&["run", "plan.toml", "--journal", "journal.jsonl", "--progress=json"]).code(0);
    let events: Vec<Value> =
        said.err.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"))).collect();
    let document = include_str!("../../../docs/progress.md");
    for event in &events {
        for name in event.as_object().unwrap().keys().chain([&event["event"].as_str().unwrap().to_string()]) {
            assert!(document.contains(&format!("`{name}`")), "docs/progress.md does not have `{name}` of {event}");
        }
        assert!(event["at"].as_str().unwrap().starts_with("20"), "{event}");
    }
    let of = |kind: &str| events.iter().filter(|event| event["event"] == kind).collect::<Vec<_>>();
    let begun = &of("run_begun")[0];
    assert_eq!((&begun["cells_planned"], &begun["targets"][1]), (&6.into(), &"small".into()));
    assert_eq!(begun["journal"], "journal.jsonl");
    let (cells, ended) = (of("cell_begun"), of("cell_ended"));
    assert_eq!((cells.len(), ended.len()), (6, 6));
    for (cell, ended) in cells.iter().zip(&ended) {
        assert_eq!((&cell["cell"], &ended["outcome"]), (&ended["cell"], &"done".into()));
        let phase = of("phase_ended").into_iter().find(|phase| phase["cell"] == cell["cell"]).unwrap().clone();
        let name = phase["phase"].as_str().unwrap();
        assert!(of("phase_begun").iter().any(|begun| begun["cell"] == cell["cell"] && begun["phase"] == name));
        assert_eq!(ended["values"][name]["time_ns"].as_f64(), phase["time_ns"].as_f64());
    }
    let interim = of("interim_analysis");
    assert_eq!((interim.len(), &interim[0]["end"], &interim[0]["round"]), (1, &"rounds".into(), &3.into()));
    let standings = interim[0]["standings"].as_array().unwrap();
    assert!(standings[0]["against_reference"].is_null() && standings[1]["against_reference"]["ratio"].is_number());
    assert_eq!((&standings[1]["target"], &standings[1]["eliminated"]), (&"small".into(), &false.into()));
    let last = of("run_ended");
    assert_eq!((last.len(), &last[0]["finish"]), (1, &"rounds".into()));
    assert!(said.out.contains("All tables"), "{}", said.out);

    let refused = lab.run(&["run", "plan.toml", "--journal", "journal.jsonl", "--progress=json"]).code(1);
    let error: Value = serde_json::from_str(refused.err.lines().last().unwrap()).unwrap();
    assert_eq!(error["event"], "message");
}

/// Without a terminal there is no cursor to move.
#[test]
fn a_pipe_gets_a_line_for_each_cell() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    let said = lab.run_plan(PLAN).code(0);
    assert!(!said.err.contains('\u{1b}') && !said.err.contains('\r'), "{:?}", said.err);
    assert_eq!(said.err.lines().filter(|line| line.contains("] round ")).count(), 6, "{}", said.err);
    assert!(said.err.contains("[6/6] round 3") && said.err.contains("after 3 rounds: "), "{}", said.err);
}

/// What a terminal of this size gets while the plan runs, with these keys pressed at its begin.
fn on_a_terminal(lab: &Lab, (columns, lines): (u32, u32), keys: &str) -> String {
    lab.write_plan(PLAN);
    let pickfs = format!("{} run plan.toml --journal journal.jsonl", env!("CARGO_BIN_EXE_pickfs"));
    let command = format!("stty cols {columns} rows {lines}; {pickfs}");
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--flush", "--command", &command, "/dev/null"]).env("TERM", "xterm");
    script.envs(lab.pickfs().get_envs().filter_map(|(name, value)| Some((name, value?))));
    script.current_dir(lab.path(".")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut running = script.spawn().expect("script of util-linux starts");
    let mut keyboard = running.stdin.take().expect("its input");
    keyboard.write_all(keys.as_bytes()).expect("keys are taken");
    let said = running.wait_with_output().expect("an end");
    drop(keyboard);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stdout));
    String::from_utf8_lossy(&said.stdout).into_owned()
}

/// The previous screen comes back before the report; on a small terminal it is never taken.
#[test]
fn a_large_terminal_is_filled_and_given_back() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let (enter, leave) = ("\u{1b}[?1049h", "\u{1b}[?1049l");
    let lab = Lab::new();
    let said = on_a_terminal(&lab, (120, 40), "?");
    let (screen, after) = said.split_once(leave).expect("the screen is given back");
    assert!(screen.contains(enter) && !after.contains(enter), "{said:?}");
    for seen in ["round 3 of at most 3", "small", "this machine", "measuring", "wait before the next cell", "●"] {
        assert!(screen.contains(seen), "{seen} is missing");
    }
    assert!(after.contains("after 3 rounds: ") && after.contains("All tables"), "{after:?}");
    assert_eq!(lab.folded().cells.len(), 6);
    lab.assert_nothing_left();

    let lab = Lab::new();
    let said = on_a_terminal(&lab, (80, 24), "");
    assert!(!said.contains(enter) && said.contains("press q to end"), "{said:?}");
}
