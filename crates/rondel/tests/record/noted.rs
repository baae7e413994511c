//! Notes of a recorder about missing messages, and their effect on a check.

use std::process::Command;

use crate::support::network::{arguments, free_endpoint, independent, python, router, zenoh};
use crate::support::{Folder, rondel, start_rondel};

/// The connection breaks while messages without numbers are recorded: their number is unknown, and the recording has
/// the time of the outage. Its verdicts are those of the live run.
#[test]
fn a_recording_notes_when_it_was_cut_off() {
    let Some(python) = python("a_recording_notes_when_it_was_cut_off") else { return };
    let endpoint = free_endpoint();
    let mut first = router(&endpoint);
    let (folder, network) = (Folder::new(), zenoh("client", &endpoint));
    let specification = folder.file(
        "v.rondel",
        "topic speed \"t/speed\" { v: float }\n@time(steps) property now = speed.v < 9\n\
         @time(steps) property ever = historically speed.v < 9\n",
    );
    let file = folder.path("drive.mcap");
    let mut record = start_rondel(arguments(&["record", "zenoh:t/speed", "-o", &file], &network));
    record.wait_stderr("ready");
    let own = ["run", &specification, "--topic", "speed=zenoh:t/speed", "--emit", "every"];
    let mut run = start_rondel(arguments(&own, &network));
    run.wait_stderr("ready");
    let options = ["t/speed", "--mode", "client", "--connect", &endpoint, "--file", "-"];
    let mut publisher = independent(&python, "zenoh_publish.py", &options);
    publisher.write(b"{\"v\": 1}\n");
    run.wait_stdout("satisfied     ever");
    first.kill();
    drop(first);
    let second = router(&endpoint);
    for process in [&mut record, &mut run] {
        process.wait_stderr("the connection was lost from");
    }
    // Until it arrives, the publisher may be cut off.
    while run.stdout_within(std::time::Duration::from_millis(200)).is_none() {
        publisher.write(b"{\"v\": 2}\n");
    }
    for process in [&mut record, &mut run] {
        process.terminate();
    }
    record.finish().expect_status(5).expect_stderr(&["the connection was lost from"]);
    let live = run.finish();
    let checked = rondel(["check", &specification, &file, "-q", "--emit", "every"]);
    checked.expect_status(4).expect_stderr(&["its recorder was cut off from a network 1 time, first at"]);
    for output in [&live.stdout, &checked.stdout] {
        let verdicts = |of: &str| -> Vec<String> {
            let lines = output.lines().filter(|line| line.contains(&format!(" {of} ")));
            lines.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
        };
        assert_eq!(verdicts("now").last().unwrap(), "satisfied", "{output}");
        assert_eq!(verdicts("ever").last().unwrap(), "inconclusive", "{output}");
    }
    drop((second, publisher));
}

/// Notes of a recorder count: the silence at the end, what is not written or read, and parts that follow.
#[test]
fn notes_of_the_recorder_count() {
    let Some(python) = python("notes_of_the_recorder_count") else { return };
    let folder = Folder::new();
    let script = "
import sys
from mcap.writer import Writer
for name, notes in [('whole', {}), ('unwritten', {'unwritten': '7'}), ('unread', {'unread': '1'}),
                    ('0', {'part': '5 0 more'}), ('1', {'part': '5 1 more'}), ('2', {'part': '5 2 last'})]:
    with open(sys.argv[1] + '/' + name + '.mcap', 'wb') as file:
        writer = Writer(file)
        writer.start(library='rondel test')
        channel = writer.register_channel('odom', 'json', 0)
        for i in range(3):
            writer.add_message(channel, i * 500_000_000, b'{\"v\": 1}', i * 500_000_000, i)
        writer.add_metadata('rondel', {'until': '6000000000', **notes})
        writer.finish()
";
    let written = Command::new(&python).args(["-c", script, &folder.path(".")]).output().unwrap();
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let specification = folder.file(
        "v.rondel",
        "topic odom { v: float }\n@time(dense) property fresh = once[0, 2 s] on(odom)\n\
         assert longest(not fresh) <= 500 ms\nassert always odom.v < 9\n",
    );
    let check = |files: &[&str]| {
        let files = files.iter().map(|name| folder.path(&format!("{name}.mcap")));
        rondel(["check".into(), specification.clone(), "--merge".into()].into_iter().chain(files))
    };
    // From 3 s on nothing is fresh, up to 6 s.
    let whole = check(&["whole"]);
    whole.expect_status(1);
    assert!(whole.stdout.contains("longest 3"), "{}", whole.stdout);
    assert!(whole.stdout.contains("satisfied     always odom.v < 9"), "{}", whole.stdout);
    let unwritten = check(&["unwritten"]);
    unwritten.expect_status(4).expect_stderr(&["its recorder missed 7 messages (7 not written)"]);
    assert!(!unwritten.stdout.contains("violated"), "{}", unwritten.stdout);
    assert!(unwritten.stdout.contains("inconclusive  always odom.v < 9"), "{}", unwritten.stdout);
    check(&["unread"]).expect_stderr(&["its recorder could not read 1 publisher or topic"]);
    let few = folder.file("few.rondel", "topic odom { v: float }\nproperty p = odom.v < 9\n");
    let parts = |numbers: &[&str]| {
        let files = numbers.iter().map(|name| folder.path(&format!("{name}.mcap")));
        rondel(["check".into(), few.clone()].into_iter().chain(files))
    };
    parts(&["0", "1", "2"]).expect_status(0);
    parts(&["0", "2"]).expect_status(4).expect_stderr(&["between parts 0 and 2 of a recording"]);
    parts(&["0", "1"]).expect_status(4).expect_stderr(&["a recording goes on after part 1"]);
}
