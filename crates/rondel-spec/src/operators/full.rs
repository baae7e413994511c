//! `over full d`: a window that says nothing until it is full.
//!
//! | | |
//! |---|---|
//! | meaning | the measurement over `d`, once a message on one of its topics is as old as the window is long |
//! | unknown | before that, and where the measurement is |
//! | steps | `over full n` is full with the n-th step from that of the first message |
//! | lowering | `if once[d,] on(topic) then m else unknown`; of several topics, one of them |
//! | state | that of the window and of a `once` without an upper bound |

use crate::graph::Graph;
use crate::spec::{Bounds, Expr, ExprId, TimeModel};

/// Adds a measurement that is unknown until its window is full.
pub(crate) fn full_window(graph: &mut Graph, window: ExprId, model: TimeModel) -> ExprId {
    let Expr::Window { over, topics, .. } = graph.spec().nodes[window.index()].clone() else { return window };
    let mut message = None;
    for topic in topics {
        let on = graph.add(Expr::On(topic));
        message = Some(message.map_or(on, |other| graph.or(other, on)));
    }
    let Some(message) = message else { return window };
    // Of the last n steps the first is n - 1 steps ago; a message d ago is just out of the window.
    let lower = if model == TimeModel::Steps { over - 1 } else { over };
    let full = graph.once(Bounds { lower, upper: None }, message);
    let unknown = graph.unknown();
    let known = graph.or(full, unknown);
    graph.choice(known, window, window)
}
