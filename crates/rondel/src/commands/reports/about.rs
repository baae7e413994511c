//! Origin of a report: the command and the specification.

use rondel_report::html::About;

use crate::specification::Specification;

/// Options of reports and pictures, whose files say nothing about the results.
const OUTPUTS: [&str; 3] = ["--report", "--out", "-o"];

/// The command of this process, and the texts of a specification.
pub(super) fn of(specification: &Specification) -> About {
    let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    let texts = specification.sources.texts().map(|(name, text)| (name.to_owned(), text.to_owned()));
    About { command: Some(command(arguments)), files: texts.collect() }
}

/// The command of arguments, as a shell reads it, without the reports that it writes.
fn command(mut arguments: impl Iterator<Item = String>) -> String {
    let mut text = "rondel".to_owned();
    let mut are_options = true;
    while let Some(argument) = arguments.next() {
        if are_options && OUTPUTS.contains(&argument.as_str()) {
            arguments.next();
            continue;
        }
        let names_output =
            |option: &&str| argument.strip_prefix(*option).is_some_and(|rest| rest.starts_with('='));
        if are_options && OUTPUTS.iter().any(names_output) {
            continue;
        }
        are_options &= argument != "--";
        text.push(' ');
        text += &quoted(&argument);
    }
    text
}

/// An argument in quotes, if a shell would not read it as one word.
fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=,+@%".contains(c);
    if !argument.is_empty() && argument.chars().all(is_plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_repeated_without_their_reports() {
        let of = |arguments: &[&str]| command(arguments.iter().map(|argument| (*argument).to_owned()));
        assert_eq!(
            of(&["check", "-q", "--report", "html=a.html", "a.rondel", "--report=tap", "b.jsonl"]),
            "rondel check -q a.rondel b.jsonl"
        );
        assert_eq!(of(&["plot", "-o", "a.svg", "a b.rondel", "--out=x"]), "rondel plot 'a b.rondel'");
        assert_eq!(
            of(&["check", "-f", "it's < 3", "--", "--report", ""]),
            r"rondel check -f 'it'\''s < 3' -- --report ''"
        );
    }
}
