//! Golden tests of diagnostics: each `tests/diagnostics/*.rondel` is compared with its `.txt` file. With `UPDATE=1`
//! in the environment the `.txt` files are rewritten; review the difference before committing it. A first line
//! `# --time linear` sets an option of the parser.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rondel_spec::{
    Code, Definition, Definitions, NoDefinition, Outcome, ParseOptions, Schema, SchemaType, TimeModel,
    TypeConstant, ValueType, parse_typed,
};

/// The packages `autoware_vehicle_msgs` and `diagnostic_msgs` with one type each.
struct Types;

impl Definitions for Types {
    fn definition(&self, name: &str) -> Result<Definition, NoDefinition> {
        if name == "diagnostic_msgs/msg/DiagnosticArray" {
            return Ok(diagnostics());
        }
        if name == "sensor_msgs/msg/BatteryState" {
            return Ok(battery());
        }
        let is_known = name.starts_with("autoware_vehicle_msgs/");
        if name != "autoware_vehicle_msgs/msg/GearReport" {
            let types = vec!["autoware_vehicle_msgs/msg/GearReport".to_owned()];
            return Err(if is_known {
                NoDefinition::NotInPackage { types }
            } else {
                NoDefinition::UnknownPackage { alike: Vec::new() }
            });
        }
        let int = || SchemaType::Value(ValueType::Int);
        let stamp = Schema { fields: vec![("sec".to_owned(), int()), ("nanosec".to_owned(), int())] };
        let stamp = SchemaType::Stamp(ValueType::Time, stamp);
        let constant = |name: &str, value: i64| TypeConstant {
            owner: "GearReport".to_owned(),
            name: name.to_owned(),
            value: rondel_event::Value::Int(value),
        };
        Ok(Definition {
            enumerations: std::collections::HashMap::new(),
            schema: Schema { fields: vec![("stamp".to_owned(), stamp), ("report".to_owned(), int())] },
            short_name: "GearReport".to_owned(),
            constants: vec![constant("NONE", 0), constant("REVERSE", 20), constant("PARK", 22)],
        })
    }
}

/// A type whose constants belong to the type of its elements.
fn diagnostics() -> Definition {
    let value = |name: &str, value_type| (name.to_owned(), SchemaType::Value(value_type));
    let status = Schema { fields: vec![value("level", ValueType::Int), value("name", ValueType::String)] };
    let status = SchemaType::Array(Box::new(SchemaType::Object(status)), None);
    Definition {
        enumerations: std::collections::HashMap::new(),
        schema: Schema { fields: vec![("status".to_owned(), status)] },
        short_name: "DiagnosticArray".to_owned(),
        constants: vec![TypeConstant {
            owner: "DiagnosticStatus".to_owned(),
            name: "ERROR".to_owned(),
            value: rondel_event::Value::Int(2),
        }],
    }
}

/// A type whose constants begin with the names of its fields.
fn battery() -> Definition {
    let field = |name: &str| (name.to_owned(), SchemaType::Value(ValueType::Int));
    let names = [
        "POWER_SUPPLY_STATUS_UNKNOWN",
        "POWER_SUPPLY_STATUS_NOT_CHARGING",
        "POWER_SUPPLY_STATUS_CHARGING",
        "POWER_SUPPLY_HEALTH_UNKNOWN",
    ];
    let constants = names.iter().zip(0..).map(|(name, value)| TypeConstant {
        owner: "BatteryState".to_owned(),
        name: (*name).to_owned(),
        value: rondel_event::Value::Int(value),
    });
    Definition {
        enumerations: std::collections::HashMap::new(),
        schema: Schema { fields: vec![field("power_supply_status"), field("power_supply_health")] },
        short_name: "BatteryState".to_owned(),
        constants: constants.collect(),
    }
}

fn parse(text: &str) -> Outcome {
    parse_typed(text, &ParseOptions::default(), &Types)
}

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics");
    let mut cases: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "rondel"))
        .collect();
    cases.sort();
    cases
}

/// Returns the options that the first line of a case sets.
fn options(text: &str) -> ParseOptions {
    let time = |time, linear| ParseOptions { time: Some(time), linear };
    match text.lines().next() {
        Some("# --time linear") => time(TimeModel::Dense, true),
        Some("# --time dense") => time(TimeModel::Dense, false),
        Some("# --time steps") => time(TimeModel::Steps, false),
        _ => ParseOptions::default(),
    }
}

#[test]
fn diagnostics_match_the_golden_files() {
    let update = std::env::var_os("UPDATE").is_some();
    let mut wrong = Vec::new();
    for case in cases() {
        let text = std::fs::read_to_string(&case).unwrap();
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        let outcome = parse_typed(&text, &options(&text), &Types);
        let shown = outcome.render(&name, &text, false);
        assert_eq!(outcome.spec.is_none(), outcome.diagnostics.iter().any(|d| d.is_error()), "{name}");
        let expected = case.with_extension("txt");
        if update {
            std::fs::write(&expected, &shown).unwrap();
        } else if std::fs::read_to_string(&expected).unwrap_or_default() != shown {
            wrong.push(format!("{name} now gives:\n{shown}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_code_has_a_case() {
    let seen: BTreeSet<Code> = cases()
        .iter()
        .flat_map(|case| parse(&std::fs::read_to_string(case).unwrap()).diagnostics)
        .map(|diagnostic| diagnostic.code)
        .collect();
    let missing: Vec<_> =
        Code::ALL.iter().filter(|code| !is_of_engine(code.as_str()) && !seen.contains(code)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Returns whether only the engine reports a code; its cases are in `rondel-engine/tests/refusals`.
fn is_of_engine(code: &str) -> bool {
    code.starts_with("E07")
}

/// The reference has exactly one section for each code, whose example gives this code.
#[test]
fn the_reference_has_every_code() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/diagnostics.md");
    let page = std::fs::read_to_string(page).unwrap();
    let sections: Vec<(&str, &str)> = page
        .split("\n### ")
        .skip(1)
        .map(|section| section.split_once(|c: char| !c.is_alphanumeric()).unwrap())
        .collect();
    let names: Vec<_> = sections.iter().map(|(name, _)| *name).collect();
    let expected: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(names, expected);
    for (name, section) in sections {
        let example = section.split("```rondel\n").nth(1).and_then(|rest| rest.split("```").next());
        let example = example.unwrap_or_else(|| panic!("{name} has no example"));
        if is_of_engine(name) {
            continue;
        }
        let given: Vec<_> = parse(example).diagnostics.iter().map(|d| d.code.as_str()).collect();
        assert!(given.contains(&name), "the example of {name} gives {given:?}");
    }
}
