//! Runs on networks: their verdicts are those of the recordings beside them.

use super::{
    CERTAIN, CHAIN, Deployment, EMIT, Message, Network, before_the_end, by_property, by_topic,
    first_difference, lines, live, messages, messages_apart, seconds, without_times,
};

/// Ten thousand messages on three networks at once.
#[test]
fn in_the_order_of_times_on_three_networks() {
    let Some(mqtt) = Network::mqtt("in_the_order_of_times_on_three_networks") else { return };
    let (zenoh, dds) = (Network::zenoh(), Network::dds());
    let messages = messages(3400);
    let mut deployment = Deployment::new([&zenoh, &dds, &mqtt], CERTAIN);
    deployment.specification += CHAIN;
    let live = live(&deployment, &messages);
    let again = lines(&by_topic(&messages), |_| String::new());
    live.and_written(&messages).and("one topic after the other", again).expect_same_verdicts();
}

/// On each network by itself, every property waiting for all topics, with explanations.
#[test]
fn waiting_for_the_specification_with_explanations() {
    let Some(mqtt) = Network::mqtt("waiting_for_the_specification_with_explanations") else { return };
    let messages = messages(150);
    for network in [Network::zenoh(), Network::dds(), mqtt] {
        let alignment = format!("{CERTAIN}, wait_for: specification");
        let mut deployment = Deployment::new([&network; 3], &alignment).explained();
        deployment.specification += CHAIN;
        let live = live(&deployment, &messages);
        assert!(live.runs[0].1.stdout.contains("\"evidence\""));
        let again = lines(&by_topic(&messages), |_| String::new());
        live.and_written(&messages).and("one topic after the other", again).expect_same_text();
    }
}

/// Sets are made of the times alone, whatever the order of arrival.
#[test]
fn in_sets_of_every_policy() {
    let Some(mqtt) = Network::mqtt("in_sets_of_every_policy") else { return };
    let (messages, zenoh) = (messages(200), Network::zenoh());
    for (policy, networks) in [
        ("exact", [&zenoh, &mqtt, &mqtt]),
        ("approximate, max_interval: 1500 ms", [&mqtt; 3]),
        ("epsilon, epsilon: 1200 ms", [&zenoh; 3]),
    ] {
        let alignment = format!("policy: {policy}, absent_after: never, ahead: never, behind: never");
        let live = live(&Deployment::new(networks, &alignment).explained(), &messages);
        assert!(live.runs[0].1.stdout.matches("limited").count() > 3, "{policy}: there are sets");
        let again = lines(&by_topic(&messages), |_| String::new());
        live.and_written(&messages).and("one topic after the other", again).expect_same_verdicts();
    }
}

/// As they arrive, with times of their own, over one connection.
#[test]
fn as_they_arrive_with_times_in_the_messages() {
    let Some(mqtt) = Network::mqtt("as_they_arrive_with_times_in_the_messages") else { return };
    let messages = messages_apart(200, 3000);
    for network in [Network::zenoh(), mqtt] {
        let mut deployment = Deployment::new([&network; 3], "policy: arrival").explained();
        deployment.specification += CHAIN;
        live(&deployment, &messages).and_written(&messages).expect_same(before_the_end, first_difference);
    }
}

/// With the time of arrival, which is another one for each who listens: all but the times is the same.
#[test]
fn as_they_arrive_with_the_times_of_arrival() {
    let Some(mqtt) = Network::mqtt("as_they_arrive_with_the_times_of_arrival") else { return };
    let messages = messages(200);
    for network in [Network::zenoh(), mqtt] {
        let mut deployment = Deployment::new([&network; 3], "policy: arrival");
        deployment.specification = "topic gear { report: int, robot: string } topic speed { v: float, robot: string }
            topic brake { pressed: bool }
            property limited = speed.v < 9 or once brake.pressed
            property braked = changed(gear.report) -> (not brake.pressed since[0, 7] speed.v > 3)
            property soon = gear.report == 2 -> eventually[0, 9] brake.pressed
            property of_robot for each r in (gear.robot, speed.robot) = gear.report == 3 -> once[0, 4] speed.v < 5
            machine driving { initial standing; standing -> moving when speed.v > 6
                moving -> standing when brake.pressed; error moving while gear.report == 0 for 3 }
            ".to_owned();
        for (_, _, settings) in &mut deployment.topics {
            *settings = "time: arrival".to_owned();
        }
        let written = lines(&messages, |message| format!("\"time\":{},", seconds(message.time)));
        live(&deployment, &messages).and("written", written).expect_same(without_times, first_difference);
    }
}

/// The pace of a topic, which decides when there is a set, is measured by the clock as messages arrive: the sets of two
/// listeners differ, and so do those of a run and a recording. What holds of all is compared: the times of the sets are
/// those of messages, in order, and there are about as many.
#[test]
fn the_latest_of_every_topic() {
    let network = Network::zenoh();
    let messages = messages(200);
    let alignment = "policy: latest, absent_after: never, ahead: never, behind: never";
    let live = live(&Deployment::new([&network; 3], alignment), &messages).and_written(&messages);
    let times: Vec<f64> = messages.iter().map(|message| message.time as f64 / 1000.0).collect();
    let sets = |text: &str| -> usize {
        let limited = text.lines().filter(|line| line.contains("\"limited\""));
        let of_sets: Vec<f64> = limited
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["time"].as_f64().unwrap())
            .collect();
        assert!(of_sets.is_sorted() && of_sets.iter().all(|time| times.contains(time)));
        of_sets.len()
    };
    let expected = sets(&live.runs[0].1.stdout);
    assert!(expected > 100, "{expected} sets");
    for (name, text) in &live.recordings {
        let found = sets(&live.check(name, text, EMIT[0]).stdout);
        assert!(found.abs_diff(expected) < expected / 5, "{name}: {found} sets, live {expected}");
    }
}

/// Messages that come too late, in an order that is known: one topic seldom and always forty seconds behind, another one
/// at times. All times are whole seconds, and the wait is not, so that the pauses of a busy machine change nothing.
#[test]
fn late_messages_have_the_same_verdicts_live_and_recorded() {
    let messages = late();
    let network = Network::zenoh();
    for (late, wait_for) in [("late", "property"), ("drop", "specification"), ("inconclusive", "property")] {
        let alignment = format!(
            "late: {late}, wait_for: {wait_for}, max_wait: 15500 ms, absent_after: never, ahead: never, behind: never"
        );
        let live = live(&Deployment::new([&network; 3], &alignment).explained(), &messages);
        let of_run = |text: &str| -> Vec<String> {
            text.lines()
                .filter(|line| line.contains(" late, by "))
                .map(|line| line.trim().to_owned())
                .collect()
        };
        let expected = of_run(&live.runs[0].1.stderr);
        assert_eq!(expected.len(), 2, "{}", live.runs[0].1.stderr);
        // The recording of the tap has times of arrival, like the run.
        let checked = live.check("tap", &live.recordings[0].1, "every");
        assert_eq!(counts(&of_run(&checked.stderr)), counts(&expected));
        // A late message counts some nanoseconds after the verdict before it; how many depends on the evaluation.
        let microseconds = |text: &str| by_property(&without_nanoseconds(text));
        live.and_written(&messages).expect_same(microseconds, first_difference);
    }
}

/// The text with its times cut to microseconds: `386.000000002` is `386`.
fn without_nanoseconds(text: &str) -> String {
    let mut pieces = text.split(".00000000");
    let mut cut = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        cut += piece.strip_prefix(|c: char| c.is_ascii_digit()).unwrap_or(piece);
    }
    cut
}

/// The numbers of late messages in sentences; the delays differ by the time between sending and arrival.
fn counts(sentences: &[String]) -> Vec<String> {
    sentences.iter().map(|sentence| sentence.split(", by").next().unwrap().to_owned()).collect()
}

fn late() -> Vec<Message> {
    let mut arriving: Vec<(i64, Message)> = Vec::new();
    for (i, mut message) in messages_apart(150, 3000).into_iter().enumerate() {
        let period = message.time / 10_000;
        let place =
            ["gear", "speed", "brake"].iter().position(|topic| *topic == message.topic).unwrap() as i64;
        if message.topic == "brake" && period % 6 != 0 {
            continue;
        }
        let before = format!("\"t\":{},", seconds(message.time));
        message.time = 10_000 * period + 3_000 * place;
        message.payload = message.payload.replace(&before, &format!("\"t\":{},", seconds(message.time)));
        let delay = match message.topic {
            "brake" => 40_000,
            "speed" if period % 7 == 3 => 30_000,
            _ => 0,
        };
        arriving.push((10 * (message.time + delay) + i as i64 % 10, message));
    }
    arriving.sort_by_key(|(arrival, _)| *arrival);
    arriving.into_iter().map(|(_, message)| message).collect()
}

/// An address with a wildcard: the topics that it stands for are recorded under their own names.
#[test]
fn a_wildcard_on_mqtt() {
    let test = "a_wildcard_on_mqtt";
    let Some(network) = Network::mqtt(test) else { return };
    let mut deployment = Deployment::new([&network; 3], "policy: arrival");
    deployment.specification = "topic pose { robot: string, x: float }
        property inside for each r in pose.robot = pose.x < 9 or once[0, 2] pose.x < 1
        property moves for each r in pose.robot = changed(pose.x)
        "
    .to_owned();
    deployment.topics = vec![("+/pose", &network, "time: arrival".to_owned())];
    let messages: Vec<Message> = messages(200)
        .into_iter()
        .zip(["r1/pose", "r2/pose", "r3/pose"].into_iter().cycle())
        .map(|(message, topic)| {
            let robot = &topic[..2];
            let x = message.time % 10;
            Message { topic, payload: format!("{{\"robot\":\"{robot}\",\"x\":{x}}}"), ..message }
        })
        .collect();
    let written = lines(&messages, |message| format!("\"time\":{},", seconds(message.time)));
    let written = written.replace("\"topic\":\"", "\"topic\":\"mqtt:t/");
    live(&deployment, &messages).and("written", written).expect_same(without_times, first_difference);
}
