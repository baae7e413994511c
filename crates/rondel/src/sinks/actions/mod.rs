//! Actions on verdicts: messages, programs and calls of services.
//!
//! The evaluating thread only looks up the actions of a property, and puts a record of the verdict into a bounded queue
//! ([`ActionFeed`]). A thread of its own publishes messages; each program and each call has a thread while it lasts, and
//! their number is limited. The queue, the rate, and the number of threads have limits: actions beyond them are counted.

mod acting;
mod feed;
mod groups;
mod limit;
mod open;
mod program;
mod queue;
mod state;
mod template;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;

use std::time::Duration;

use rondel_decode::schema::Schema;
use rondel_event::Verdict;
use rondel_net::address::Address;
use rondel_net::ros2::Service;

pub use acting::{Actions, Start, Target};
pub use feed::ActionFeed;
pub use groups::kill_programs;
pub use limit::Limit;
pub use state::{ActionFigures, ActionHandle, ActionSummary};
pub use template::{Facts, Placeholder, Template, TextTemplate};

/// The verdicts that cause an action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum On {
    /// Violations that begin.
    #[default]
    Violated,
    /// Verdicts that become satisfied.
    Satisfied,
    /// Verdicts that become inconclusive.
    Inconclusive,
    /// Every change of a verdict, and the first one.
    Change,
}

impl On {
    /// Returns its name in deployments.
    pub fn as_str(self) -> &'static str {
        match self {
            On::Violated => "violated",
            On::Satisfied => "satisfied",
            On::Inconclusive => "inconclusive",
            On::Change => "change",
        }
    }

    /// Whether a change to this verdict causes the action.
    fn is_met(self, verdict: Verdict) -> bool {
        match self {
            On::Violated => verdict == Verdict::Violated,
            On::Satisfied => verdict == Verdict::Satisfied,
            On::Inconclusive => verdict == Verdict::Inconclusive,
            On::Change => true,
        }
    }
}

/// Settings of an action.
#[derive(Clone, Debug)]
pub struct ActionSettings {
    /// The verdicts that cause it.
    pub on: On,
    /// Whether it is caused by each property, by position.
    pub properties: Vec<bool>,
    /// Its effect.
    pub act: Act,
    /// Its limits.
    pub limit: Limit,
    /// Whether it uses values of explanations.
    pub explains: bool,
}

/// The effect of an action.
#[derive(Clone, Debug)]
pub enum Act {
    /// A message.
    Publish(Box<PublishAct>),
    /// A program.
    Run(RunAct),
    /// A call of a service.
    Call(Box<CallAct>),
}

/// A message.
#[derive(Clone, Debug)]
pub struct PublishAct {
    /// Address.
    pub to: Address,
    /// Form of its payload.
    pub form: Form,
    /// Content.
    pub message: Template,
}

/// Form of the payload of a message.
#[derive(Clone, Debug)]
pub enum Form {
    /// JSON; also in a string of DDS, which the publisher writes.
    Json,
    /// A value as text.
    Plain,
    /// CDR of this type.
    Cdr(Schema),
}

/// A program with its arguments.
#[derive(Clone, Debug)]
pub struct RunAct {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<TextTemplate>,
    /// Time limit.
    pub timeout: Duration,
}

/// A call of a service of ROS 2.
#[derive(Clone, Debug)]
pub struct CallAct {
    /// Address of the service.
    pub to: Address,
    /// The service.
    pub service: Service,
    /// Value of `data` in the request, where the type has it.
    pub data: Option<Template>,
    /// Time limit.
    pub timeout: Duration,
}

impl ActionSettings {
    /// Returns a name for messages.
    pub fn name(&self) -> String {
        match &self.act {
            Act::Publish(act) => format!("publish {}", act.to),
            Act::Run(act) => format!("run {}", act.program),
            Act::Call(act) => format!("call {}", act.to),
        }
    }

    /// Whether it starts a program.
    pub fn runs(&self) -> bool {
        matches!(self.act, Act::Run(_))
    }

    /// Returns the address that it publishes on, or that of its service.
    pub fn address(&self) -> Option<&Address> {
        match &self.act {
            Act::Publish(act) => Some(&act.to),
            Act::Run(_) => None,
            Act::Call(act) => Some(&act.to),
        }
    }

    /// Returns the same, to be changed.
    pub fn address_mut(&mut self) -> Option<&mut Address> {
        match &mut self.act {
            Act::Publish(act) => Some(&mut act.to),
            Act::Run(_) => None,
            Act::Call(act) => Some(&mut act.to),
        }
    }

    /// Visits every placeholder of its values.
    pub fn placeholders(&self, visit: &mut dyn FnMut(&Placeholder)) {
        match &self.act {
            Act::Publish(act) => act.message.visit(visit),
            Act::Run(act) => act.arguments.iter().flat_map(TextTemplate::placeholders).for_each(visit),
            Act::Call(act) => act.data.iter().for_each(|data| data.visit(visit)),
        }
    }

    /// Returns the names of its placeholders that are neither facts of every verdict nor among these parameters: paths of
    /// values of explanations.
    pub fn paths(&self, is_parameter: impl Fn(&str) -> bool) -> Vec<String> {
        let mut paths = Vec::new();
        self.placeholders(&mut |of| {
            if let Placeholder::Named(name) = of
                && !is_parameter(name)
                && !paths.contains(name)
            {
                paths.push(name.clone());
            }
        });
        paths
    }
}

/// The sentence about programs that are not allowed.
pub const NOT_ALLOWED: &str = "the deployment has actions that run programs: allow that with `rondel run --allow-run`, or remove \
                               `run` from `actions`";
/// Default of the programs that run at once.
pub const PROGRAMS: usize = 4;
/// The same, for the command line.
pub const PROGRAMS_TEXT: &str = "4";
