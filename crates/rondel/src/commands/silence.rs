//! `rondel silence`: silencing a property for some time.

use clap::Args;

use super::operate::{EXIT_STATUS, OperatorArguments};

/// Silence a property in a store of verdicts for some time, or end a silence
///
/// Verdicts of a silenced property are stored and published as before; the run that writes the store sends no
/// notifications about it. A silence ends by itself.
#[cfg_attr(not(feature = "sqlite"), allow(dead_code))]
#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub struct Silence {
    /// The property to silence, in every series of the store
    #[arg(value_name = "PROPERTY", required_unless_present = "remove", conflicts_with = "remove")]
    property: Option<String>,
    /// Silence only instances with this value of a parameter, such as id=7; can be repeated
    #[arg(long = "where", value_name = "NAME=VALUE", conflicts_with = "remove")]
    chosen: Vec<String>,
    /// Silence for this duration, such as "30 min", "2 h" or "7 d"
    #[arg(
        long = "for",
        value_name = "DURATION",
        required_unless_present = "remove",
        conflicts_with = "remove"
    )]
    length: Option<String>,
    /// End the silence with this number, which `rondel query FILE present_silences` shows
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(i64).range(1..))]
    remove: Option<i64>,
    #[command(flatten)]
    operator: OperatorArguments,
}

#[cfg(feature = "sqlite")]
mod unmatched;

#[cfg(not(feature = "sqlite"))]
impl Silence {
    /// Refuses, and returns the exit status.
    pub fn run(self) -> u8 {
        super::operate::unavailable()
    }
}

#[cfg(feature = "sqlite")]
mod acting {
    use rondel_net::adapter::now;
    use rondel_sinks::sqlite::{NewSilence, is_same_value};
    use rondel_spec::nearest;
    use serde_json::{Map, Value};

    use super::Silence;
    use super::unmatched::unmatched;
    use crate::commands::operate::{OpenStore, Refusal, finish, member};
    use crate::commands::times::{duration, too_long};
    use crate::warn;

    /// Most violations that the end of a silence shows.
    const SHOWN: u32 = 100;

    impl Silence {
        /// Sets or removes the silence, and returns the exit status.
        pub fn run(self) -> u8 {
            finish(match self.remove {
                Some(id) => self.remove(id),
                None => self.silence(),
            })
        }

        fn silence(&self) -> Result<String, Refusal> {
            let property = self.property.as_deref().unwrap_or_default();
            let text = self.length.as_deref().unwrap_or_default();
            let length = duration(text).filter(|length| *length > 0).ok_or_else(|| {
                let why = too_long(text).unwrap_or("write a duration such as 30 min, 2 h or 7 d");
                Refusal::usage(format!("--for {text}: {why}"))
            })?;
            let parameters = chosen(&self.chosen)?;
            let from = now().as_nanos();
            let until = from.saturating_add(length);
            let (mut is_database, mut uncovered, mut earlier) = (false, None, None);
            let action = self.operator.carry_out(|store, by| {
                is_database = store.is_database();
                check_property(store, property)?;
                uncovered = unmatched(property, &parameters, &store.instances(property)?);
                earlier = covering(&parameters, &store.lasting_silences(property, from)?);
                let (parameters, comment) = (parameters.as_str(), self.operator.comment());
                store.silence(&NewSilence { property, parameters, from, until, by, comment })
            })?;
            let instances = match action.members.get("parameters") {
                Some(parameters) => format!(" {parameters}"),
                None => String::new(),
            };
            if let Some(uncovered) = uncovered {
                warn(&format!("{uncovered}; the silence is stored"));
            }
            if let Some(earlier) = earlier {
                warn(&format!(
                    "silence {earlier} covers the same already; both are stored, and each ends by itself or with --remove"
                ));
            }
            let heeded = match is_database {
                true => "; it is shown, and no run reads it: runs heed silences of a store of SQLite",
                false => "",
            };
            Ok(format!(
                "silence {} of '{property}'{instances} lasts until {}{heeded}",
                action.subject,
                member(&action, "until")
            ))
        }

        fn remove(&self, id: i64) -> Result<String, Refusal> {
            let at = now().as_nanos();
            let (mut open, mut notified) = (Vec::new(), "; a run that checks it notifies it now");
            let action = self.operator.carry_out(|store, by| {
                if store.is_database() {
                    notified = "";
                }
                open = store.begun_in_silence(id, SHOWN + 1)?;
                store.remove_silence(id, by, at)
            })?;
            let property = member(&action, "property");
            let mut text = format!("silence {id} of '{property}' has ended");
            for violation in open.iter().take(SHOWN as usize) {
                text += &format!("\nviolation {violation} of '{property}' is open{notified}");
            }
            if open.len() > SHOWN as usize {
                text += "\nso are others, which the view `open_violations` shows";
            }
            Ok(text)
        }
    }

    /// Refuses a property that the store does not have, with the nearest one.
    fn check_property(store: &mut OpenStore, property: &str) -> Result<(), Refusal> {
        let names = store.properties()?;
        if names.iter().any(|name| name == property) {
            return Ok(());
        }
        let meant = nearest(property, names.iter().map(String::as_str));
        let meant = meant.map_or(String::new(), |name| format!("; did you mean '{name}'?"));
        Err(Refusal::usage(format!("no run of the store has a property '{property}'{meant}")))
    }

    /// Returns the first of these silences that covers all that one with these parameters covers. All parameters are JSON
    /// objects.
    fn covering(parameters: &str, silences: &[(i64, String)]) -> Option<i64> {
        let object = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap_or_default();
        let own = object(parameters);
        let has =
            |(name, value): (&String, &Value)| own.get(name).is_some_and(|own| is_same_value(own, value));
        silences.iter().find(|(_, other)| object(other).iter().all(has)).map(|(id, _)| *id)
    }

    /// Returns the chosen values of parameters as a JSON object.
    fn chosen(all: &[String]) -> Result<String, Refusal> {
        let mut object = Map::new();
        for text in all {
            let parts = text.split_once('=').filter(|(name, _)| !name.trim().is_empty());
            let Some((name, value)) = parts else {
                return Err(Refusal::usage(format!("--where {text}: write NAME=VALUE, such as id=7")));
            };
            let value = match serde_json::from_str(value) {
                Ok(value @ (Value::Number(_) | Value::Bool(_) | Value::String(_))) => value,
                _ => Value::from(value),
            };
            if object.insert(name.trim().to_owned(), value).is_some() {
                return Err(Refusal::usage(format!("--where {text}: '{}' has a value already", name.trim())));
            }
        }
        Ok(Value::Object(object).to_string())
    }

    #[cfg(test)]
    #[allow(clippy::unwrap_used)]
    mod tests {
        use super::*;

        #[test]
        fn a_silence_covers_another_with_its_parameters() {
            let silences = [(3, r#"{"id":1,"arm":"left"}"#.to_owned()), (4, r#"{"id":1}"#.to_owned())];
            for (parameters, expected) in [
                (r#"{"arm":"left","id":"1"}"#, Some(3)),
                (r#"{"id":1,"arm":"right"}"#, Some(4)),
                (r#"{"id":2}"#, None),
                ("{}", None),
            ] {
                assert_eq!(covering(parameters, &silences), expected, "{parameters}");
            }
            assert_eq!(covering(r#"{"id":2}"#, &[(5, "{}".to_owned())]), Some(5));
            assert_eq!(covering("{}", &[(5, "{}".to_owned())]), Some(5));
        }

        #[test]
        fn values_of_parameters_are_numbers_truths_or_texts() {
            let of = |all: &[&str]| chosen(&all.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
            assert_eq!(of(&[]).unwrap(), "{}");
            assert_eq!(of(&["id=7", "on=true"]).unwrap(), r#"{"id":7,"on":true}"#);
            assert_eq!(of(&["name=a=b"]).unwrap(), r#"{"name":"a=b"}"#);
            assert_eq!(of(&["name=\"7\"", "empty="]).unwrap(), r#"{"empty":"","name":"7"}"#);
            for wrong in [&["id"][..], &["=7"], &["id=7", "id=8"]] {
                assert!(of(wrong).unwrap_err().why.starts_with("--where "), "{wrong:?}");
            }
        }
    }
}
