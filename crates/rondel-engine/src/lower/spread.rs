//! Division of the properties without `for each` among workers, before they are compiled.
//!
//! Properties of one time model are one section, in which equal subformulas are computed once. Workers evaluate whole
//! sections, so that each gets properties of a [generation](Property::generation) of its own. What they share is
//! computed by each of them.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use rondel_spec::{Class, Expr, ExprId, Property, Spec, TimeModel};

/// Reason why the thread that reads evaluates a property, and no worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StayReason {
    /// It reads the state of a machine, or a machine of instances may repeat transitions without a message.
    Machine,
    /// It has quantifiers that are not evaluated as `for each`.
    Quantifier,
    /// It measures a chain.
    Chain,
    /// Its numbers are interpolated.
    Interpolation,
    /// Its value is recorded.
    Term,
}

impl fmt::Display for StayReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StayReason::Machine => "the steps of machines without a message have a common limit",
            StayReason::Quantifier => "the values of its quantifiers are kept together",
            StayReason::Chain => "all properties of a chain follow the same messages",
            StayReason::Interpolation => "it waits for the next numbers",
            StayReason::Term => "its value is recorded",
        })
    }
}

/// Gives the properties that `workers` workers may evaluate generations from 1 on, such that each generation has about
/// as many nodes as another. Call it for a specification whose properties have generation 0. Returns whether any
/// property may be evaluated by a worker.
///
/// ```
/// let text = "topic t { x: int } property p = t.x > 1 property q = once t.x > 2
///             machine m { initial a a -> a when on(t) }";
/// let mut spec = rondel_spec::parse(text).spec.unwrap();
/// assert!(rondel_engine::spread(&mut spec, 2));
/// let generations: Vec<u32> = spec.properties.iter().map(|property| property.generation).collect();
/// assert_eq!(generations, [1, 2, 0]);
/// ```
pub fn spread(spec: &mut Spec, workers: usize) -> bool {
    let mut separable: Vec<usize> = (0..spec.properties.len()).collect();
    separable.retain(|at| is_separable(spec, &spec.properties[*at]));
    // Without other sections, reports at one event have the order of the section: steps, then points.
    let is_event = |property: &&Property| property.slice.is_none() && property.time != TimeModel::Dense;
    let first = spec.properties.iter().find(is_event).map(|property| property.time);
    if spec.properties.iter().filter(is_event).any(|property| Some(property.time) != first) {
        separable.retain(|at| spec.properties[*at].time == TimeModel::Dense);
    }
    // The least robustness is taken at all time points of a section, also those that another property causes.
    let is_dense = |property: &Property| property.slice.is_none() && property.time == TimeModel::Dense;
    if spec.properties.iter().any(|property| is_dense(property) && property.robust) {
        separable.retain(|at| spec.properties[*at].time != TimeModel::Dense);
    }
    let clusters = clusters(spec, &separable);
    let total: usize = clusters.iter().map(|(size, _)| size).sum();
    let mut before = 0;
    for (size, properties) in &clusters {
        // The worker in whose share of all nodes the middle of the group lies.
        let worker = (2 * before + size) * workers / (2 * total).max(1);
        let generation = 1 + worker.min(workers.saturating_sub(1)) as u32;
        properties.iter().for_each(|at| spec.properties[*at].generation = generation);
        before += size;
    }
    !clusters.is_empty()
}

/// Whether a section of this property alone could be evaluated by a worker.
fn is_separable(spec: &Spec, property: &Property) -> bool {
    let is_named = spec.machines.iter().any(|machine| machine.name == property.name)
        || spec.chains.iter().any(|chain| chain.name == property.name);
    let is_common = |(_, node): (ExprId, &Expr)| {
        matches!(node.class(), Class::Machine | Class::Quantifier) || matches!(node, Expr::Chain(..))
    };
    let is_plain = property.slice.is_none() && !property.linear && !is_named;
    is_plain && !spec.below(property.formula).any(is_common)
}

/// Groups the properties that have an operator with a limited number of samples in common: samples beyond the limit are
/// counted once. Returns for each group the number of nodes of its properties and their positions, in the order of their
/// first properties.
fn clusters(spec: &Spec, properties: &[usize]) -> Vec<(usize, Vec<usize>)> {
    // The group of each property, by its position in the list, and the first property with each operator.
    let mut groups: Vec<usize> = (0..properties.len()).collect();
    let mut sizes = vec![0; properties.len()];
    let mut owners: HashMap<ExprId, usize> = HashMap::new();
    for (own, at) in properties.iter().enumerate() {
        let property = &spec.properties[*at];
        for (id, node) in spec.below(property.formula) {
            sizes[own] += 1;
            let is_limited = matches!(node, Expr::Window { .. })
                || property.robust && matches!(node.class(), Class::Past | Class::Future);
            if is_limited {
                let owner = *owners.entry(id).or_insert(own);
                let (a, b) = (root(&groups, own), root(&groups, owner));
                groups[a.max(b)] = a.min(b);
            }
        }
    }
    let mut clusters: BTreeMap<usize, (usize, Vec<usize>)> = BTreeMap::new();
    for (own, at) in properties.iter().enumerate() {
        let (size, members) = clusters.entry(root(&groups, own)).or_default();
        *size += sizes[own];
        members.push(*at);
    }
    clusters.into_values().collect()
}

/// The first property of the group of a property.
fn root(groups: &[usize], mut of: usize) -> usize {
    while groups[of] != of {
        of = groups[of];
    }
    of
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generations(text: &str, workers: usize) -> Vec<u32> {
        let mut spec = rondel_spec::parse(text).spec.unwrap();
        spread(&mut spec, workers);
        spec.properties.iter().map(|property| property.generation).collect()
    }

    #[test]
    fn properties_are_divided_by_their_sizes() {
        let text = "topic t { x: int }
            property a = t.x > 1 property b = t.x > 2 property c = t.x > 3 property d = t.x > 4";
        assert_eq!(generations(text, 2), [1, 1, 2, 2]);
        assert_eq!(generations(text, 4), [1, 2, 3, 4]);
    }

    #[test]
    fn properties_with_one_window_stay_together() {
        let text = "topic t { x: int }
            property a = count(t) over 3 s > 1 property b = t.x > 2 property c = count(t) over 3 s > 4";
        let text = text.replace("property b", "@time(dense) property b");
        let found = generations(&text, 3);
        assert_eq!(found[0], found[2]);
        assert_ne!(found[0], found[1]);
    }

    #[test]
    fn quantifiers_and_instances_stay() {
        let text = "topic t { x: int, s: string }
            property a = forall x. t{x: x} -> x > 2
            property b for each s in (t.s) = t.x > 2
            property c = t.x > 4";
        let stay = generations(text, 2).into_iter().map(|generation| generation == 0);
        assert_eq!(stay.collect::<Vec<_>>(), [true, true, false]);
    }

    #[test]
    fn steps_and_points_together_stay() {
        let text = "topic t { x: int }
            property a = once[0, 3] t.x > 1
            @time(points) property b = once[0, 3 s] t.x > 2
            property c = once[0, 3 s] t.x > 4";
        let stay = generations(text, 2).into_iter().map(|generation| generation == 0);
        assert_eq!(stay.collect::<Vec<_>>(), [true, true, false]);
    }

    #[test]
    fn dense_properties_stay_beside_robust_ones() {
        let text = "topic t { x: int }
            property a = t.x > 1
            @robust property b = once[0, 3 s] t.x > 2
            property c = once[0, 3 s] t.x > 4";
        let stay = generations(text, 2).into_iter().map(|generation| generation == 0);
        assert_eq!(stay.collect::<Vec<_>>(), [false, true, true]);
    }
}
