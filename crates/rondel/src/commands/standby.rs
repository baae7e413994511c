//! `rondel standby`: the members of a group, and the handover to a standby.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use rondel_event::{Timestamp, TopicId};
use rondel_net::adapter::{Publisher, Sample, Subscription};
use serde_json::json;

use crate::deployment::{self, Deployment, GroupSettings};
use crate::live::networks::{self, Networks};
use crate::live::signals::End;
use crate::live::standby::election::{LARGEST_EPOCH, MemberId, Role, Sign};
use crate::live::standby::message::{self, About, Message};
use crate::live::standby::network_of;
use crate::output::Format;
use crate::output::time_text::TimeText;
use crate::{complain, exit, say};

/// Time limit for the first sign of a member, beside three leases.
const FIRST: Duration = Duration::from_secs(5);
/// Time limit for a handover, beside five leases.
const HANDOVER: Duration = Duration::from_secs(3);
/// Time limit for leaving the network.
const LEAVE: Duration = Duration::from_secs(1);

/// Show the members of a group, or hand over to a standby
#[derive(Debug, Args)]
pub struct Standby {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    Status(Status),
    Promote(Promote),
}

/// Show which member of a group is active, and which stand by
#[derive(Debug, Args)]
#[command(after_help = STATUS_EXIT)]
struct Status {
    /// The deployment, with the section `group`
    #[arg(value_name = "FILE", default_value_os_t = deployment::default_file())]
    file: PathBuf,
    /// The format of the result
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

const STATUS_EXIT: &str = "\
Exit status:
  0  a member is active, and another one stands by
  2  the deployment has mistakes or no group
  4  no member is active, or none stands by
  5  no member is there";

/// Let a standby take over, as for an update of the active member
///
/// The active member publishes everything that it received so far, and hands over.
#[derive(Debug, Args)]
#[command(after_help = PROMOTE_EXIT)]
struct Promote {
    /// The deployment, with the section `group`
    #[arg(value_name = "FILE", default_value_os_t = deployment::default_file())]
    file: PathBuf,
    /// The member that takes over (default: the standby that is not late with the largest `prefer`)
    #[arg(long, value_name = "MEMBER", value_parser = member)]
    member: Option<MemberId>,
}

const PROMOTE_EXIT: &str = "\
Exit status:
  0  another member is active
  2  the deployment has mistakes or no group
  4  there is no standby, it did not take over, or it is late and --member does not name it
  5  no member is active";

fn member(text: &str) -> Result<MemberId, &'static str> {
    message::id(text).ok_or("must be 16 hexadecimal digits, as `rondel standby status` shows them")
}

impl Standby {
    /// Carries out the command, and returns the exit status.
    pub fn run(self) -> u8 {
        match self.task {
            Task::Status(status) => status.run().unwrap_or_else(|status| status),
            Task::Promote(promote) => promote.run().unwrap_or_else(|status| status),
        }
    }
}

/// A group as somebody who is no member sees it.
struct Watching {
    settings: GroupSettings,
    networks: Networks,
    publisher: Box<dyn Publisher>,
    subscription: Box<dyn Subscription>,
    incoming: mpsc::Receiver<(Sign, About)>,
    members: BTreeMap<MemberId, (Sign, About)>,
    latest: Option<TakeOver>,
}

/// The latest take-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TakeOver {
    epoch: u64,
    /// Its time, or a later one by the delay of a sign.
    at: Instant,
}

/// Notes a sign that was received at a time: the smallest delay of all signs of an epoch counts.
fn note(latest: &mut Option<TakeOver>, sign: &Sign, about: &About, received: Instant) {
    let lasted = about.active_for.filter(|_| sign.role == Role::Active);
    let lasted = lasted.and_then(|lasted| u64::try_from(lasted).ok()).map(Duration::from_nanos);
    // A clock may have begun after the take-over.
    let Some(at) = lasted.and_then(|lasted| received.checked_sub(lasted)) else { return };
    match latest {
        Some(known) if known.epoch > sign.epoch => {}
        Some(known) if known.epoch == sign.epoch => known.at = known.at.min(at),
        _ => *latest = Some(TakeOver { epoch: sign.epoch, at }),
    }
}

impl Watching {
    /// Joins the network of the group of a deployment.
    ///
    /// # Errors
    /// The exit status, after the reason was shown.
    fn join(file: &Path) -> Result<Watching, u8> {
        let deployment = Deployment::from_file(file).map_err(|_| exit::USAGE)?;
        let Some(settings) = deployment.group.clone() else {
            complain(&format!("{}: there is no group: add `group: NAME`", file.display()));
            return Err(exit::USAGE);
        };
        let end = End::on_signal().map_err(networks::failed)?;
        let joined = network_of(&settings.address, &deployment.networks);
        let networks = networks::open(&joined, true, &end.interrupted)?;
        let (sender, incoming) = mpsc::sync_channel(1_024);
        let group = settings.name.clone();
        let receive = move |_: TopicId, samples: &[Sample<'_>]| {
            for sample in samples {
                if let Ok(Message::Sign(sign, about)) = message::receive(&group, sample.payload)
                    && sign.epoch <= LARGEST_EPOCH
                {
                    // Signs are repeated.
                    let _ = sender.try_send((sign, about));
                }
            }
        };
        let publisher = networks.publisher(&settings.address, false).map_err(networks::failed)?;
        let subscription = networks.subscribe(&settings.address, TopicId(u32::MAX), Arc::new(receive));
        let subscription = subscription.map_err(networks::failed)?;
        networks.begin();
        Ok(Watching {
            settings,
            networks,
            publisher,
            subscription,
            incoming,
            members: BTreeMap::new(),
            latest: None,
        })
    }

    /// Receives signs until the condition holds, up to `limit`. Returns whether it holds.
    fn receive(
        &mut self,
        limit: Duration,
        mut is_met: impl FnMut(&BTreeMap<MemberId, (Sign, About)>) -> bool,
    ) -> bool {
        let deadline = Instant::now() + limit;
        loop {
            if is_met(&self.members) {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.incoming.recv_timeout(left) {
                Ok((sign, about)) if !sign.ends => {
                    note(&mut self.latest, &sign, &about, Instant::now());
                    self.members.insert(sign.from, (sign, about));
                }
                Ok((sign, _)) => _ = self.members.remove(&sign.from),
                Err(_) => return false,
            }
        }
    }

    /// Leaves the network.
    fn leave(self) {
        self.publisher.flush(LEAVE);
        self.subscription.close(LEAVE);
        drop((self.publisher, self.subscription));
        self.networks.close_within(LEAVE);
    }
}

/// The member that is active with the latest epoch.
fn active(members: &BTreeMap<MemberId, (Sign, About)>) -> Option<&Sign> {
    let signs = members.values().map(|(sign, _)| sign);
    signs.filter(|sign| sign.role == Role::Active).max_by_key(|sign| sign.epoch)
}

impl Status {
    fn run(&self) -> Result<u8, u8> {
        let mut watching = Watching::join(&self.file)?;
        let lease = watching.settings.lease;
        if !watching.receive(FIRST + lease * 3, |members| !members.is_empty()) {
            complain(&format!("no member of group '{}' is there", watching.settings.name));
            watching.leave();
            return Err(exit::NETWORK);
        }
        // Each member sends a sign every third of the lease.
        watching.receive(lease * 2, |_| false);
        self.print(&watching.members);
        let has_active = active(&watching.members).is_some();
        let has_standby = watching.members.values().any(|(sign, _)| sign.role == Role::Standby);
        watching.leave();
        Ok(if has_active && has_standby { exit::SATISFIED } else { exit::INCONCLUSIVE })
    }

    fn print(&self, members: &BTreeMap<MemberId, (Sign, About)>) {
        let mut out = std::io::stdout().lock();
        let mut times = TimeText::default();
        let mut members: Vec<_> = members.iter().collect();
        // The active one first; the others by their ids.
        members.sort_by_key(|(_, (sign, _))| sign.role != Role::Active);
        for (id, (sign, about)) in members {
            let line = match self.format {
                Format::Json => json!({
                    "member": id.to_string(),
                    "process": about.process,
                    "state": sign.role.as_str(),
                    "epoch": sign.epoch,
                    "prefer": sign.prefer,
                    "since": about.since as f64 / 1e9,
                    "stood_still": about.stood_still.map(|time| time as f64 / 1e9),
                    "late": sign.is_late,
                    "taken": about.taken.map(|(from, step)| json!({ "from": from.to_string(), "step": step })),
                })
                .to_string(),
                Format::Text => format!(
                    "{:<8}  member {id}  process {}  epoch {}  prefer {}  receives since {}{}",
                    sign.role.as_str(),
                    about.process,
                    sign.epoch,
                    sign.prefer,
                    times.text(Timestamp::from_nanos(about.since)),
                    remarks(sign, about, &mut times),
                ),
            };
            // With standard output closed, the exit status still carries the result.
            let _ = writeln!(out, "{line}");
        }
    }
}

/// The facts about a member that only some have.
fn remarks(sign: &Sign, about: &About, times: &mut TimeText) -> String {
    let mut text = String::new();
    if let Some((from, step)) = about.taken {
        text += &format!("  state taken from member {from} at step {step}");
    }
    if sign.is_late {
        text += "  late, without earlier messages";
    }
    if let Some(time) = about.stood_still {
        let time = times.text(Timestamp::from_nanos(time));
        text += &format!("  stood still until {time}, may have missed messages");
    }
    text
}

/// Returns why no member can take over: the wanted one, or any.
fn refusal(wanted: Option<MemberId>, members: &BTreeMap<MemberId, (Sign, About)>) -> Option<String> {
    let signs = members.values().map(|(sign, _)| sign);
    let standbys = signs.filter(|sign| sign.role == Role::Standby);
    if let Some(wanted) = wanted {
        let is_there = standbys.map(|sign| sign.from).any(|id| id == wanted);
        return (!is_there).then(|| format!("member {wanted} is no standby"));
    }
    let Some(best) = standbys.max_by_key(|sign| sign.rank()) else {
        return Some("there is no standby".to_owned());
    };
    let id = best.from;
    best.is_late.then(|| {
        format!(
            "member {id} stands by without the state of earlier messages: verdicts that depend on them would be inconclusive. \
             Wait until `rondel standby status` no longer shows it as late, or name it: `--member {id}`"
        )
    })
}

impl Promote {
    fn run(&self) -> Result<u8, u8> {
        let started = Instant::now();
        let mut watching = Watching::join(&self.file)?;
        let status = self.promote(&mut watching, started);
        watching.leave();
        Ok(status)
    }

    /// Hands over, unless a member has taken over since the command started: another command may have requested that.
    fn promote(&self, watching: &mut Watching, started: Instant) -> u8 {
        let (lease, name) = (watching.settings.lease, watching.settings.name.clone());
        if !watching.receive(FIRST + lease * 3, |members| active(members).is_some()) {
            complain(&format!("no member of group '{name}' is active"));
            return exit::NETWORK;
        }
        watching.receive(lease, |_| false);
        let Some(before) = active(&watching.members).copied() else { return exit::NETWORK };
        if self.member == Some(before.from) {
            say(&format!("member {} is active already, in epoch {}", before.from, before.epoch));
            return exit::SATISFIED;
        }
        let is_since_start = |latest: &TakeOver| latest.epoch == before.epoch && latest.at > started;
        if watching.latest.as_ref().is_some_and(is_since_start) {
            let fact = format!(
                "member {} has taken over in epoch {} since this command started",
                before.from, before.epoch
            );
            return match self.member {
                None => {
                    say(&format!("{fact}: nothing is handed over"));
                    exit::SATISFIED
                }
                Some(wanted) => {
                    complain(&format!("{fact}, and not {wanted}: try again"));
                    exit::INCONCLUSIVE
                }
            };
        }
        if let Some(why) = refusal(self.member, &watching.members) {
            complain(&format!("member {} of group '{name}' cannot hand over: {why}", before.from));
            return exit::INCONCLUSIVE;
        }
        let began = Instant::now();
        if let Err(error) =
            watching.publisher.publish(&message::write_promote(&name, self.member, before.epoch))
        {
            complain(&format!("cannot send the request: {error}"));
            return exit::NETWORK;
        }
        watching.publisher.release();
        let is_later = |members: &BTreeMap<MemberId, (Sign, About)>| {
            active(members).is_some_and(|now| now.epoch > before.epoch)
        };
        if !watching.receive(HANDOVER + lease * 5, is_later) {
            complain(&format!("member {} has not handed over in time", before.from));
            return exit::INCONCLUSIVE;
        }
        active(&watching.members).map_or(exit::SATISFIED, |now| self.report(&before, now, began))
    }

    /// Reports which member is active after the one of the sign `before`. Returns the exit status.
    fn report(&self, before: &Sign, now: &Sign, began: Instant) -> u8 {
        if now.from == before.from {
            let fact = match self.member {
                Some(wanted) => format!("member {wanted} has not taken over"),
                None => "no member has taken over".to_owned(),
            };
            complain(&format!("{fact}: member {} is active again, in epoch {}", now.from, now.epoch));
            return exit::INCONCLUSIVE;
        }
        if let Some(wanted) = self.member.filter(|wanted| *wanted != now.from) {
            complain(&format!("member {} took over in epoch {}, and not {wanted}", now.from, now.epoch));
            return exit::INCONCLUSIVE;
        }
        let lasted = began.elapsed().as_millis();
        say(&format!("member {} is active in epoch {}, after {lasted} ms", now.from, now.epoch));
        exit::SATISFIED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGN: Sign = Sign {
        from: MemberId(1),
        number: 1,
        epoch: 2,
        prefer: 0,
        is_late: false,
        role: Role::Active,
        position: None,
        ends: false,
        successor: None,
    };
    const ABOUT: About = About {
        process: 1,
        sent: None,
        since: 0,
        first: None,
        stood_still: None,
        active_for: None,
        taken: None,
        specification: 0,
        lease: 0,
        gates: None,
    };

    #[test]
    fn late_standby_takes_over_only_by_name() {
        let member = |id: u64, role: Role, is_late: bool| {
            let id = MemberId(id);
            (id, (Sign { from: id, prefer: i64::from(is_late), role, is_late, ..SIGN }, ABOUT))
        };
        let mut members = BTreeMap::from([member(1, Role::Active, false)]);
        let says = |members: &BTreeMap<_, _>, wanted: Option<u64>| {
            refusal(wanted.map(MemberId), members).unwrap_or_default()
        };
        assert_eq!(says(&members, None), "there is no standby");
        members.extend([member(2, Role::Standby, true)]);
        let late = says(&members, None);
        assert!(late.starts_with("member 0000000000000002 stands by without the state"), "{late}");
        assert!(late.ends_with("`--member 0000000000000002`"), "{late}");
        assert_eq!(says(&members, Some(2)), "");
        assert_eq!(says(&members, Some(1)), "member 0000000000000001 is no standby");
        members.extend([member(3, Role::Standby, false)]);
        assert_eq!(says(&members, None), "");
    }

    #[test]
    fn remarks_name_what_a_member_lacks() {
        let mut times = TimeText::default();
        assert_eq!(remarks(&SIGN, &ABOUT, &mut times), "");
        let late = remarks(&Sign { is_late: true, ..SIGN }, &ABOUT, &mut times);
        assert_eq!(late, "  late, without earlier messages");
        let taken = remarks(&SIGN, &About { taken: Some((MemberId(2), 7)), ..ABOUT }, &mut times);
        assert_eq!(taken, "  state taken from member 0000000000000002 at step 7");
    }

    #[test]
    fn time_of_a_take_over_has_the_least_delay() {
        let (sign, about) = (SIGN, ABOUT);
        let (begun, ms) = (Instant::now(), |ms: u64| Duration::from_millis(ms));
        let at = |latest: Option<TakeOver>| latest.map(|latest| (latest.epoch, latest.at - begun));
        let mut latest = None;
        let mut receive = |sign: &Sign, active_ms: Option<i64>, received_ms: u64| {
            let about = About { active_for: active_ms.map(|ms| ms * 1_000_000), ..about };
            note(&mut latest, sign, &about, begun + ms(received_ms));
            at(latest)
        };
        assert_eq!(receive(&sign, None, 50), None, "an older member does not say it");
        assert_eq!(receive(&sign, Some(-1), 50), None);
        assert_eq!(receive(&sign, Some(10), 50), Some((2, ms(40))));
        assert_eq!(receive(&sign, Some(100), 120), Some((2, ms(20))));
        assert_eq!(receive(&sign, Some(200), 250), Some((2, ms(20))), "this sign took longer");
        assert_eq!(receive(&Sign { role: Role::Standby, epoch: 3, ..sign }, Some(0), 300), Some((2, ms(20))));
        assert_eq!(receive(&Sign { epoch: 3, ..sign }, Some(0), 300), Some((3, ms(300))));
        assert_eq!(receive(&sign, Some(0), 400), Some((3, ms(300))), "an earlier epoch");
    }
}
