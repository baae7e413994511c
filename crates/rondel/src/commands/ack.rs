//! `rondel ack`: acknowledging a violation.

use clap::Args;

use super::operate::{EXIT_STATUS, OperatorArguments};

/// Acknowledge a violation in a store of verdicts
///
/// The acknowledgement names who takes care of the violation. It expires when the property is satisfied again, and at
/// the time of --until.
#[cfg_attr(not(feature = "sqlite"), allow(dead_code))]
#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub struct Ack {
    /// The number of the violation, which `rondel query FILE open_violations` shows
    #[arg(value_name = "ID", value_parser = clap::value_parser!(i64).range(1..))]
    id: i64,
    /// Let the acknowledgement expire at this time: a duration from now such as "2 h", seconds since 1970, or a date and
    /// time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Replace the acknowledgement of another operator
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    operator: OperatorArguments,
}

#[cfg(not(feature = "sqlite"))]
impl Ack {
    /// Refuses, and returns the exit status.
    pub fn run(self) -> u8 {
        super::operate::unavailable()
    }
}

#[cfg(feature = "sqlite")]
mod acting {
    use rondel_net::adapter::now;
    use rondel_sinks::sqlite::Acknowledgement;

    use super::Ack;
    use crate::commands::operate::{Refusal, finish, member};
    use crate::commands::times::{time, too_long};

    impl Ack {
        /// Acknowledges the violation, and returns the exit status.
        pub fn run(self) -> u8 {
            finish(self.acknowledge())
        }

        fn acknowledge(&self) -> Result<String, Refusal> {
            let at = now().as_nanos();
            let until = self.until.as_deref().map(|text| until(text, at)).transpose()?;
            let action = self.operator.carry_out(|store, by| {
                let comment = self.operator.comment();
                let by = Acknowledgement { by, comment, at, until, replaces: self.replace };
                store.acknowledge(self.id, &by)
            })?;
            let mut sentence = format!(
                "violation {} of '{}' is acknowledged by {}",
                self.id,
                member(&action, "property"),
                action.operator
            );
            if self.until.is_some() {
                sentence += &format!(" until {}", member(&action, "until"));
            }
            Ok(sentence)
        }
    }

    /// Reads the end of an acknowledgement.
    fn until(text: &str, now: i64) -> Result<i64, Refusal> {
        let until = time(text, now, 1).ok_or_else(|| {
            let why = too_long(text).unwrap_or(
                "write a duration from now such as 2 h, seconds since 1970, or a date and time such as \
                 2026-11-22T18:04:13Z",
            );
            Refusal::usage(format!("--until {text}: {why}"))
        })?;
        match until > now {
            true => Ok(until),
            false => Err(Refusal::usage(format!("--until {text}: this time has passed"))),
        }
    }

    #[cfg(test)]
    #[allow(clippy::unwrap_used)]
    mod tests {
        use super::*;

        #[test]
        fn ends_lie_ahead() {
            let now = 5_000_000_000_000_000;
            assert_eq!(until("2 h", now).unwrap(), now + 7_200_000_000_000);
            assert_eq!(until("6000000", now).unwrap(), 6_000_000_000_000_000);
            assert_eq!(
                until("1970-01-01T00:00:02Z", now).unwrap_err().why,
                "--until 1970-01-01T00:00:02Z: this time has passed"
            );
            for wrong in ["", "tomorrow", "0 s", "-1 s", "4000000"] {
                assert!(until(wrong, now).is_err(), "{wrong}");
            }
        }
    }
}
