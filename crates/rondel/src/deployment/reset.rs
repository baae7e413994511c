//! The section `reset:` of a deployment.

use rondel_runtime::{Reset, ResetPolicy};

use super::alignment::duration;
use super::yaml::{Item, Mistakes, Synonyms};

/// Names that people write for settings of resets.
const SYNONYMS: Synonyms = &[
    (&["policy", "action", "mode"], "write `then`, such as `then: restart`"),
    (&["limit", "by", "threshold"], "write `after`, such as `after: 1 s`"),
];

/// Reads the section `reset:`, the reaction to times of all topics that step back together.
pub(super) fn reset(item: Item<'_>, mistakes: &mut Mistakes) -> Reset {
    let mut members = item.members("reset", mistakes);
    let after = members.get("after").and_then(|item| duration(item, "after", "1 s", "", mistakes));
    let then = members.get("then").and_then(|item| Some((item, item.text("then", mistakes)?)));
    let policy = match then.as_ref().map(|(item, text)| (*item, text.as_str())) {
        None | Some((_, "restart")) => ResetPolicy::Restart,
        Some((_, "inconclusive")) => ResetPolicy::Inconclusive,
        Some((_, "ignore")) => ResetPolicy::Ignore,
        Some((item, _)) => {
            mistakes.at(item, "`then` of `reset` must be restart, inconclusive or ignore");
            ResetPolicy::Restart
        }
    };
    members.finish(SYNONYMS, mistakes);
    Reset { policy, after }
}
