//! Events of topics that a network reports: properties name them, `tap` records them, `check` reads the recording.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use support::network::{dds_domain, independent, python};
use support::{Folder, rondel, start_rondel};

const SPECIFICATION: &str = r#"topic track "track" { id: int }
property on_time = not missed_deadline(track)
property kept = not disposed(track)
property lives = alive(track)
"#;

/// A publisher of another program misses its deadline, disposes of an instance, and is gone.
#[test]
fn a_publisher_of_dds_misses_its_deadline_and_is_gone() {
    let Some(python) = python("a_publisher_of_dds_misses_its_deadline_and_is_gone") else { return };
    let (domain, folder) = (dds_domain(), Folder::new());
    folder.file("track.rondel", SPECIFICATION);
    let deployment = format!(
        "specification: track.rondel\ndds: {{ domain: {domain}, interface: lo }}\n\
         topics: {{ track: {{ source: dds:track, encoding: cdr, qos: {{ deadline: 300 ms }} }} }}\n"
    );
    let file = folder.file("rondel.yaml", deployment);
    let own = ["track", "--domain", &domain, "--kind", "track", "--deadline", "0.2", "--silence", "1"];
    let mut publisher = independent(&python, "dds_typed.py", &own);
    publisher.wait_stdout("ready");
    let mut run = start_rondel(["run", &file]);
    run.wait_stderr("ready");
    let mut tap = start_rondel(["tap", "--format", "json", "--events", &file]);
    // The deadline of a reader counts from the first message that it receives.
    tap.wait_stdout("\"event\":\"alive\"");
    publisher.write(b"wait 2\n");
    publisher.wait_stdout("matched");
    publisher.write(b"write 1 1\n");
    // Nothing more comes.
    run.wait_stdout("violated      on_time");
    tap.wait_stdout("\"event\":\"missed_deadline\"");
    publisher.write(b"dispose 1\n");
    run.wait_stdout("violated      kept");
    tap.wait_stdout("\"event\":\"disposed\"");
    publisher.kill();
    run.wait_stdout("violated      lives");
    tap.wait_stdout("\"event\":\"not_alive\"");
    run.terminate();
    run.finish().expect_status(0);
    tap.terminate();
    let tapped = tap.finish();
    // The end of the only instance is no message.
    tapped.expect_stderr(&["instance was disposed of or without publishers"]);
    assert!(!tapped.stderr.contains("without payload"), "{}", tapped.stderr);
    let recording = folder.file("track.jsonl", &tapped.stdout);
    let checked = rondel(["check", "-q", &folder.path("track.rondel"), &recording]);
    checked.expect_status(1);
    for property in ["on_time", "kept", "lives"] {
        assert!(checked.stdout.contains(&format!("violated      {property} ")), "{}", checked.stdout);
    }
}

/// A publisher of another program disposes of one instance of two, and unregisters the other one: the properties of these
/// instances see it, live and in what `tap` writes. Keys of an appendable type in the second version of CDR, and of a
/// final one in the first, whose key is neither its first nor its only part.
#[test]
fn a_disposal_is_seen_by_the_instance_of_its_key() {
    let Some(python) = python("a_disposal_is_seen_by_the_instance_of_its_key") else { return };
    for (kind, fields, parameters, instances) in [
        ("track", "id: int", "id in track.id", ["2", "1"]),
        ("unit", "name: string, id: int", "name in track.name, id in track.id", ["\"u2\", 2", "\"u1\", 1"]),
    ] {
        let (domain, folder) = (dds_domain(), Folder::new());
        let specification = format!(
            "topic track \"track\" {{ {fields} }}\n\
             property kept for each {parameters} = not disposed(track)\n\
             property held for each {parameters} = not unregistered(track)\n"
        );
        folder.file("track.rondel", specification);
        let deployment = format!(
            "specification: track.rondel\ndds: {{ domain: {domain}, interface: lo }}\n\
             topics: {{ track: {{ source: dds:track, encoding: cdr }} }}\n"
        );
        let file = folder.file("rondel.yaml", deployment);
        let mut publisher =
            independent(&python, "dds_typed.py", &["track", "--domain", &domain, "--kind", kind]);
        publisher.wait_stdout("ready");
        let mut run = start_rondel(["run", &file]);
        run.wait_stderr("ready");
        let mut tap = start_rondel(["tap", "--format", "json", "--events", &file]);
        tap.wait_stdout("\"event\":\"alive\"");
        publisher.write(b"wait 2\n");
        publisher.wait_stdout("matched");
        publisher.write(b"write 1,2 1\n");
        publisher.wait_stdout("wrote 2");
        publisher.write(b"dispose 2\n");
        tap.wait_stdout("\"event\":\"disposed\"");
        run.wait_stdout("violated      kept");
        publisher.write(b"unregister 1\n");
        tap.wait_stdout("\"event\":\"unregistered\"");
        run.wait_stdout("violated      held");
        run.terminate();
        let live = run.finish();
        live.expect_status(0);
        tap.terminate();
        let recording = folder.file("track.jsonl", &tap.finish().stdout);
        let checked = rondel(["check", &folder.path("track.rondel"), &recording]);
        checked.expect_status(1);
        for output in [&live, &checked] {
            for (property, instance) in ["kept", "held"].iter().zip(instances) {
                let of = |line: &&str| line.contains("violated ") && line.contains(&format!(" {property}["));
                let lines: Vec<&str> = output.stdout.lines().filter(of).collect();
                assert_eq!(lines.len(), 1, "{}", output.stdout);
                assert!(lines[0].contains(&format!("{property}[{instance}]")), "{}", output.stdout);
            }
        }
    }
}

/// The instances of another program miss their deadlines: the properties of these instances see it, live and in what `tap`
/// writes. The keys are a number, and a text beside a number.
#[test]
fn a_missed_deadline_is_seen_by_the_instance_of_its_key() {
    let Some(python) = python("a_missed_deadline_is_seen_by_the_instance_of_its_key") else { return };
    for (kind, fields, parameters, instances) in [
        ("track", "id: int", "id in track.id", ["1", "2"]),
        ("unit", "name: string, id: int", "name in track.name, id in track.id", ["\"u1\", 1", "\"u2\", 2"]),
    ] {
        let (domain, folder) = (dds_domain(), Folder::new());
        let specification = format!(
            "topic track \"track\" {{ {fields} }}\n\
             property on_time for each {parameters} = not missed_deadline(track)\n"
        );
        folder.file("track.rondel", specification);
        let deployment = format!(
            "specification: track.rondel\ndds: {{ domain: {domain}, interface: lo }}\n\
             topics: {{ track: {{ source: dds:track, encoding: cdr, qos: {{ deadline: 300 ms }} }} }}\n"
        );
        let file = folder.file("rondel.yaml", deployment);
        let own = ["track", "--domain", &domain, "--kind", kind, "--deadline", "0.2"];
        let mut publisher = independent(&python, "dds_typed.py", &own);
        publisher.wait_stdout("ready");
        let mut run = start_rondel(["run", &file]);
        run.wait_stderr("ready");
        let mut tap = start_rondel(["tap", "--format", "json", "--events", &file]);
        tap.wait_stdout("\"event\":\"alive\"");
        publisher.write(b"wait 2\n");
        publisher.wait_stdout("matched");
        publisher.write(b"write 1,2 1\n");
        for instance in instances {
            run.wait_stdout(&format!("violated      on_time[{instance}]"));
            tap.wait_stdout(&format!("\"id\":{}}}}}", &instance[instance.len() - 1..]));
        }
        run.terminate();
        run.finish().expect_status(0);
        tap.terminate();
        let recording = folder.file("track.jsonl", &tap.finish().stdout);
        let checked = rondel(["check", &folder.path("track.rondel"), &recording]);
        checked.expect_status(1);
        let violated =
            |instance: &&str| checked.stdout.contains(&format!("violated      on_time[{instance}]"));
        assert!(instances.iter().all(violated), "{}", checked.stdout);
    }
}

/// Events that a network cannot report are refused before the run.
#[test]
fn events_that_never_come_are_refused_or_warned_of() {
    let folder = Folder::new();
    folder.file("track.rondel", SPECIFICATION);
    let deployment = |name: &str, rest: &str| {
        folder.file(name, format!("specification: track.rondel\ntopics: {{ track: {rest} }}\n"))
    };
    let without = deployment("dds.yaml", "dds:track");
    rondel(["validate", &without])
        .expect_status(2)
        .expect_stderr(&["`missed_deadline(track)` can never be true", "qos: {deadline: 100 ms}"]);
    let mqtt = deployment("mqtt.yaml", "mqtt:track");
    rondel(["validate", &mqtt])
        .expect_stderr(&["`alive(track)` never comes: MQTT does not report events of topics, only DDS does"]);
    folder.file("track.rondel", "topic track \"track\" { id: int }\nproperty owned = owner(track) != \"\"\n");
    let never = "`owner(track)` never comes";
    for source in [
        "dds:track",
        "{ source: dds:track, qos: { ownership: shared } }",
        "{ source: dds:track, encoding: cdr, qos: { ownership: shared } }",
    ] {
        let shared = deployment("shared.yaml", source);
        rondel(["validate", &shared]).expect_status(0).expect_stderr(&[never, "qos: {ownership: exclusive}"]);
    }
    for source in [
        "{ source: dds:track, qos: { ownership: exclusive } }",
        "{ source: dds:track, encoding: cdr, qos: { ownership: exclusive } }",
        "{ source: dds:track, qos: { ownership: exclusive, reliability: reliable } }",
        "{ source: dds:track, encoding: cdr }",
    ] {
        let owned = rondel(["validate", &deployment("owned.yaml", source)]);
        owned.expect_status(0);
        assert!(!owned.stderr.contains(never), "{source}: {}", owned.stderr);
        let is_warned = owned.stderr.contains("lost messages of topic 'track' are not noticed");
        assert_eq!(is_warned, source.contains("ownership: exclusive }"), "{source}: {}", owned.stderr);
    }
    let mqtt = deployment("mqtt.yaml", "mqtt:track");
    rondel(["validate", &mqtt])
        .expect_status(0)
        .expect_stderr(&["`owner(track)` never comes: MQTT does not report events of topics, only DDS does"]);
    folder.file("track.rondel", SPECIFICATION);
    let short = rondel(["run", &folder.path("track.rondel"), "--topic", "dds:track"]);
    short.expect_status(2).expect_stderr(&["`missed_deadline(track)` can never be true"]);
}

/// A recording without any event says nothing about events: the verdict is vacuous.
#[test]
fn a_recording_without_events_is_vacuous() {
    let folder = Folder::new();
    let specification = folder.file("track.rondel", SPECIFICATION);
    let silent = folder.file("silent.jsonl", "{\"topic\":\"track\",\"time\":1,\"id\":2}\n");
    rondel(["check", "-q", &specification, &silent])
        .expect_status(4)
        .expect_stderr(&["on_time, kept, lives are vacuous: no event came on `track`"]);
    let lines =
        "{\"topic\":\"track\",\"time\":0,\"event\":\"alive\"}\n{\"topic\":\"track\",\"time\":1,\"id\":2}\n";
    let received = folder.file("received.jsonl", lines);
    rondel(["check", "-q", &specification, &received]).expect_status(0);
}

/// The owner in a recording, with and without a time of arrival; one without a publisher cannot be decoded.
#[test]
fn the_owner_of_a_recording_is_read() {
    let folder = Folder::new();
    let specification =
        folder.file("track.rondel", "topic track { id: int }\nproperty owned = owner(track) == \"a\"\n");
    let check = |lines: &str| rondel(["check", "-q", &specification, &folder.file("owner.jsonl", lines)]);
    let message = "{\"topic\":\"track\",\"time\":1,\"id\":2}\n";
    let owned = "{\"topic\":\"track\",\"time\":0,\"event\":\"owner\",\"publisher\":\"a\"}\n";
    check(&format!("{owned}{message}")).expect_status(0);
    let lost = "{\"topic\":\"track\",\"time\":2,\"arrival\":2,\"event\":\"owner\",\"publisher\":\"\"}\n";
    let lost = check(&format!("{owned}{message}{lost}"));
    lost.expect_status(1);
    assert!(lost.stdout.contains("violated      owned "), "{}", lost.stdout);
    let unnamed = "{\"topic\":\"track\",\"time\":0,\"event\":\"owner\"}\n";
    let unknown = check(&format!("{owned}{unnamed}{message}"));
    unknown.expect_status(4);
    assert!(unknown.stdout.contains("inconclusive  owned "), "{}", unknown.stdout);
    check(&format!("{unnamed}{message}")).expect_status(4).expect_stderr(&[
        "owned is vacuous: no event came on `track`",
        "the event 'owner' needs a text `publisher`",
    ]);
}
