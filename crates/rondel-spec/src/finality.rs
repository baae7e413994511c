//! Verdicts that no later message changes.

use crate::spec::{Bounds, Class, Expr, ExprId, Property, Spec, Temporal, Transition, fold};

/// Which verdicts of a property are final: whatever comes later, the property keeps them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Finality {
    /// Whether it stays satisfied once it is.
    pub satisfied: bool,
    /// Whether it stays violated once it is.
    pub violated: bool,
}

impl Finality {
    const BOTH: Finality = Finality { satisfied: true, violated: true };

    fn not(self) -> Finality {
        Finality { satisfied: self.violated, violated: self.satisfied }
    }

    fn and(self, other: Finality) -> Finality {
        Finality { satisfied: self.satisfied && other.satisfied, violated: self.violated && other.violated }
    }

    /// Whether any verdict is final.
    pub fn any(self) -> bool {
        self.satisfied || self.violated
    }
}

impl Spec {
    /// Returns for each property which of its verdicts are final. Properties with `for each`, with linear
    /// interpolation or with future operators have none.
    ///
    /// ```
    /// let text = "topic a property p = historically a.x > 3 property q = once[0, 3] a.x > 3";
    /// let spec = rondel_spec::parse(text).spec.unwrap();
    /// let finality = spec.finality();
    /// assert!(finality[0].violated && !finality[0].satisfied && !finality[1].any());
    /// ```
    pub fn finality(&self) -> Vec<Finality> {
        // For each node its finality, and whether it looks ahead.
        let all = fold(&self.nodes, |_, node, all: &[(Finality, bool)]| {
            let of = |id: &ExprId| all.get(id.index()).map(|(finality, _)| *finality).unwrap_or_default();
            let is_future = node.class() == Class::Future;
            let ahead = is_future || node.operands().any(|id| all.get(id.index()).is_some_and(|of| of.1));
            let found = match node {
                _ if ahead => Finality::default(),
                Expr::Literal(_) => Finality::BOTH,
                Expr::Not(x) => of(x).not(),
                Expr::And(x, y) | Expr::Or(x, y) => of(x).and(of(y)),
                Expr::Ambiguous(_) => Finality { satisfied: true, violated: false },
                Expr::InState(machine, states) => {
                    let machine = self.machines.get(machine.0 as usize);
                    let leaves = |transition: &Transition| {
                        states.contains(&transition.from) && !states.contains(&transition.to)
                    };
                    let stays = machine.is_some_and(|machine| !machine.transitions.iter().any(leaves));
                    Finality { satisfied: stays, violated: false }
                }
                // A truth at some time point remains a witness.
                _ => match node.past() {
                    Some(Temporal { bounds: Bounds { upper: None, .. }, all, guard: None, .. }) => {
                        Finality { satisfied: !all, violated: all }
                    }
                    _ => Finality::default(),
                },
            };
            (found, ahead)
        });
        let of = |property: &Property| match property.slice {
            None if !property.linear => all.get(property.formula.index()).map(|of| of.0).unwrap_or_default(),
            _ => Finality::default(),
        };
        self.properties.iter().map(of).collect()
    }
}
