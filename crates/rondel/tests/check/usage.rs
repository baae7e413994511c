//! Formulas, specifications and options that cannot be used.

use super::BAD;
use super::support::{Folder, letters, rondel, rondel_with_input};

#[test]
fn formulas_that_cannot_be_used_are_explained() {
    let folder = Folder::new();
    let spec = folder.file(
        "wrong.rondel",
        "topic gear { report: int }\n\
         property a = gear.reprot == 2\n\
         property b = geer.report == 2\n\
         property c = gear.report == \"drive\"\n\
         property d = gear.report ==\n",
    );
    let finished = rondel(["check", &spec, "-"]);
    // Every mistake at once, each with its code, its place and a caret under the words.
    finished.expect_status(2).expect_stdout("").expect_stderr(&[
        "error[E0301]: unknown field 'reprot' in topic 'gear'; did you mean 'report'?",
        "wrong.rondel:2:19",
        "  |                   ^^^^^^\n",
        "error[E0202]",
        "did you mean 'gear'?",
        "wrong.rondel:3:14",
        "error[E0303]",
        "wrong.rondel:4:",
        "error[E0102]",
        "found end of input",
    ]);
    for (formula, syntax, code) in [
        ("v >", "rondel", "E0102"),
        ("v > 3 and \"x\"", "rondel", "E0303"),
        ("eventually v", "rondel", "E0111"),
        ("{v > }", "rye", "E0102"),
        ("{a} -> {b} -> {c}", "rye", "E0107"),
        ("once[1,2]{a}", "rye", "E0108"),
        ("{a: *x}", "rye", "E0210"),
    ] {
        let finished = rondel(["check", "--syntax", syntax, "--formula", formula, "-"]);
        finished.expect_status(2).expect_stdout("").expect_stderr(&[code, "formula:1:", "^"]);
    }
}

#[test]
fn warnings_do_not_keep_from_checking() {
    let finished = rondel_with_input(["check", "-f", "once[5,3] v", "--format", "json", "-"], BAD.as_bytes());
    finished.expect_status(1).expect_stderr(&["warning[W0401]"]);
    assert_eq!(letters(&finished.stdout), "F");
}

#[test]
fn wrong_usage_is_refused_with_advice() {
    let folder = Folder::new();
    let spec = folder.file("good.rondel", "topic s property p = s.v");
    let missing = folder.path("missing.rondel");
    for (arguments, parts) in [
        (vec!["check"], &["rondel check --help"][..1]),
        (vec!["check", "-f", "v"], &["no recording"]),
        (vec!["check", &spec], &["no recording"]),
        (vec!["check", &missing, "-"], &["missing.rondel", "No such file"]),
        (vec!["check", "-f", "v", "--emti", "every", "-"], &["--emti", "--emit"]),
        (vec!["check", "-f", "v", "--emit", "evry", "-"], &["evry", "every"]),
        (vec!["check", "-f", "v", "--format", "xml", "-"], &["xml", "json"]),
        (vec!["check", "-f", "v", "--syntax", "reelay", "-"], &["reelay", "rye"]),
        (vec!["check", "-f", "v", "--time", "sparse", "-"], &["sparse", "dense"]),
        (vec!["check", "-f", "v", "--time-unit", "h", "-"], &["ms"]),
        (vec!["chek"], &["chek", "check"]),
        (vec![], &["Usage"]),
    ] {
        let finished = rondel(&arguments);
        assert_eq!(finished.status, Some(2), "{arguments:?}\n{}", finished.stderr);
        assert_eq!(finished.stdout, "", "{arguments:?}");
        if arguments != ["check"] {
            finished.expect_stderr(parts);
        }
        assert!(!finished.stderr.is_empty());
    }
    rondel(["--help"]).expect_status(0);
    rondel(["check", "--help"]).expect_status(0);
    rondel(["--version"]).expect_status(0);
}

#[test]
fn a_specification_and_a_formula_mean_the_same() {
    let folder = Folder::new();
    let spec = folder.file("one.rondel", "topic trace property formula = once[0,1] trace.v");
    let rye = folder.file("one.rye", "once[0:1]{v: true}\n");
    let trace = folder.file("t.jsonl", "{\"v\":true}\n{\"v\":false}\n{\"v\":false}\n");
    let options = ["--emit", "every", "--format", "json"];
    let by_file = rondel([&["check", &spec, &trace][..], &options].concat());
    let by_formula = rondel([&["check", "--formula", "once[0,1] v", &trace][..], &options].concat());
    let by_rye =
        rondel([&["check", "--syntax", "rye", "-f", "once[0:1]{v: true}", &trace][..], &options].concat());
    let by_rye_file = rondel([&["check", &rye, &trace][..], &options].concat());
    assert_eq!(letters(&by_file.stdout), "TTF");
    for other in [&by_formula, &by_rye] {
        assert_eq!(other.stdout, by_file.stdout);
        assert_eq!(other.status, Some(1));
    }
    assert_eq!(letters(&by_rye_file.stdout), "TTF");
}

#[test]
fn a_specification_that_is_not_text() {
    let folder = Folder::new();
    let binary = folder.file("binary.rondel", b"topic \xff\xfe\x00");
    rondel(["check", &binary, "-"]).expect_status(2).expect_stderr(&["binary.rondel"]);
    let directory = folder.path("");
    rondel(["check", &directory, "-"]).expect_status(2);
    let empty = folder.file("empty.rondel", "");
    rondel_with_input(["check", &empty, "-"], b"").expect_stderr(&["W0407"]);
}
