//! `rondel standby status` and `promote`, and mistakes in the settings of groups.

use super::*;

#[test]
fn promotion_hands_over_without_a_gap() {
    let endpoint = free_endpoint();
    let (_router, net) = (router(&endpoint), Net::zenoh(&endpoint));
    let mut tap = net.tap();
    let Pair { mut active, mut standby, deployment, folders: _folders } = pair(&net, FORMULA);
    let (mut feed, mut seen) = (net.feed(), Vec::new());
    let status = rondel(["standby", "status", &deployment]);
    status.expect_status(0);
    assert!(
        status.stdout.starts_with("active    member") && status.stdout.contains("\nstandby   member"),
        "{}",
        status.stdout
    );
    send(&mut feed, 0..10);
    rondel(["standby", "promote", &deployment]).expect_status(0).expect_stderr(&["is active in epoch 2"]);
    send(&mut feed, 10..20);
    active.wait_stderr("handed over to member");
    active.wait_stderr("standby: member");
    standby.wait_stderr("has handed over");
    verdicts(&mut tap, 19, &mut seen);
    check_complete(&seen, 0..20);
    // The end of the active member is a handover, too.
    standby.terminate();
    active.wait_stderr("has ended");
    standby.finish().expect_status(0);
    send(&mut feed, 20..30);
    verdicts(&mut tap, 29, &mut seen);
    check_complete(&seen, 0..30);
    rondel(["standby", "promote", &deployment]).expect_status(4).expect_stderr(&["there is no standby"]);
}

#[test]
fn commands_at_the_same_time_hand_over_once() {
    let endpoint = free_endpoint();
    let (_router, net) = (router(&endpoint), Net::zenoh(&endpoint));
    let pair = pair(&net, FORMULA);
    let epoch = || {
        let status = rondel(["standby", "status", &pair.deployment, "--format", "json"]);
        status.expect_status(0);
        let mut members = status.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        members.find(|member| member["state"] == "active").map(|member| member["epoch"].clone())
    };
    // The later one sees the take-over that the other one requests while it still looks at the members.
    for (pause_ms, expected) in [(0_u64, 2), (250, 3)] {
        let commands = [0_u64, 1].map(|at| {
            sleep(Duration::from_millis(at * pause_ms));
            start_rondel(["standby", "promote", &pair.deployment])
        });
        for command in commands {
            command.finish().expect_status(0).expect_stderr(&["epoch"]);
        }
        assert_eq!(epoch(), Some(Value::from(expected)), "{pause_ms} ms");
    }
}

#[test]
fn member_of_one_forged_sign_is_soon_gone() {
    let sign = r#"{"group":"g","member":"000000000000003f","number":1,"epoch":1,"prefer":9,"state":"standby","ends":false,"process":1,"since":0,"specification":"0","lease":60000000000}"#;
    let endpoint = free_endpoint();
    let (_router, net, folder) = (router(&endpoint), Net::zenoh(&endpoint), Folder::new());
    let deployment = net.deployment(&folder, GROUP, FORMULA);
    let mut run = start_rondel(["run", &deployment, "--summary", "json"]);
    run.wait_stderr("active in epoch 1");
    let forged = [sign.to_owned(), sign.replace(":60000000000", ":600000000000")];
    for sign in &forged {
        let mut feed = net.start(&["publish", "--to", "zenoh:rondel/group/g", "--wait", "60"]);
        feed.write(format!("{sign}\n").as_bytes());
        feed.close_input();
        feed.finish().expect_status(0);
    }
    run.wait_stderr("member 000000000000003f (process 1) stands by");
    run.wait_stderr("member 000000000000003f no longer stands by");
    let promote = ["standby", "promote", &deployment, "--member", "000000000000003f"];
    rondel(promote).expect_status(4).expect_stderr(&["member 000000000000003f is no standby"]);
    rondel(["standby", "status", &deployment]).expect_status(4);
    run.terminate();
    let ended = run.finish();
    ended.expect_status(0);
    assert!(
        ended.stderr.contains("ignores 1 sign of life with a lease below 15 ms or above 60 s"),
        "{}",
        ended.stderr
    );
    let summary: Value = serde_json::from_str(ended.stderr.lines().last().unwrap()).unwrap();
    let state = &summary["standby"];
    assert_eq!((&state["standbys"], &state["ignored"]), (&serde_json::json!([]), &1.into()));
}

#[test]
fn one_of_two_that_start_together_is_active() {
    let endpoint = free_endpoint();
    let (_router, net) = (router(&endpoint), Net::zenoh(&endpoint));
    let folders = [Folder::new(), Folder::new()];
    let deployments = [0, 1].map(|at| net.deployment(&folders[at], GROUP, FORMULA));
    let members = [0, 1].map(|at| start_rondel(["run", &deployments[at], "--prefer", &at.to_string()]));
    let deadline = Instant::now() + LIMIT;
    loop {
        let status = rondel(["standby", "status", &deployments[0], "--format", "json"]);
        let members: Vec<Value> =
            status.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let count = |state: &str| members.iter().filter(|member| member["state"] == state).count();
        if status.status == Some(0) && (count("active"), count("standby")) == (1, 1) {
            break;
        }
        assert!(Instant::now() < deadline, "{}", status.stdout);
    }
    members[0].signal("STOP");
    std::thread::sleep(Duration::from_millis(800));
    members[0].signal("CONT");
    let process = format!("process {} ", members[0].id());
    loop {
        let status = rondel(["standby", "status", &deployments[0]]).stdout;
        let line = status.lines().find(|line| line.contains(&process));
        if line.is_some_and(|line| line.contains("  stood still until ")) {
            break;
        }
        assert!(Instant::now() < deadline, "{status}");
    }
}

#[test]
fn mistakes_of_groups_are_found() {
    let folder = Folder::new();
    for (group, said) in [
        ("{ lease: 1 s }", "`group` needs `name`"),
        ("{ name: a b }", "letters, digits, `_` and `-`"),
        ("true", "`group` must be text, such as braking, not a boolean"),
        ("12", "`group` must be text, such as braking, not a number"),
        ("{ name: 1.5 }", "`name` must be text, such as braking, not a number"),
        ("[a, b]", "`group` must be text, not a list"),
        ("", "`group` has no value"),
        ("{ name: g, lease: 5 }", "`lease` must be a duration such as 100 ms; 5 has no unit"),
        ("{ name: g, lease: 5 ms }", "`lease` must be from 15 ms to 60 s"),
        ("{ name: g, prefer: x }", "`prefer` must be a whole number"),
        ("{ name: g, network: kafka }", "too late for a lease"),
        ("{ name: g, network: can }", "`network` must be zenoh, mqtt or dds"),
        ("{ name: g, priority: 1 }", "group has no setting 'priority'; write `prefer: N`"),
        ("g\nreload: watch", "is not reloaded"),
        ("g\ndurability: exactly", "cannot be used together"),
    ] {
        let text = format!(
            "formula: v\ntopics: {{ trace: zenoh:t }}\nverdicts: {{ to: zenoh:v }}\ngroup: {group}\n"
        );
        let deployment = folder.file("rondel.yaml", text);
        rondel(["validate", &deployment]).expect_status(2).expect_stderr(&[said]);
    }
    let text = "formula: v\ntopics: { trace: zenoh:t }\nverdicts: { to: stdout }\ngroup: g\n";
    let deployment = folder.file("rondel.yaml", text);
    rondel(["validate", &deployment]).expect_stderr(&["`group` needs `network`"]);
    let text = "formula: v\ntopics: { trace: zenoh:t }\nverdicts: { to: zenoh:v }\n";
    let deployment = folder.file("rondel.yaml", text);
    rondel(["run", &deployment, "--prefer", "1"]).expect_status(2).expect_stderr(&["add `group`"]);
    for prefer in ["--prefer=1000001", "--prefer=-1000001", "--prefer=99999999999"] {
        rondel(["run", &deployment, prefer]).expect_status(2).expect_stderr(&["-1000000..=1000000"]);
    }
    rondel(["standby", "promote", &deployment]).expect_status(2).expect_stderr(&["there is no group"]);
    rondel(["standby", "promote", &deployment, "--member", "12"]).expect_status(2);
}
