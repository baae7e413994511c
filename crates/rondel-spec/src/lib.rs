//! The specification language: parses text into a checked [`Spec`], with diagnostics.
//!
//! [`parse`] reads the Rondel language, [`parse_rye`] reads expressions in Reelay's format. Both return a [`Spec`]
//! and never panic on malformed text; [`Outcome::diagnostics`] contains all problems at once.
//!
//! ```
//! let text = r#"
//!     topic gear "/vehicle/status/gear" { report: int }
//!     topic velocity "/vehicle/status/velocity" { longitudinal: float }
//!     let standing = abs(velocity.longitudinal) < 0.1
//!     property gear_change_at_standstill = changed(gear.report) -> standing
//! "#;
//! let outcome = rondel_spec::parse(text);
//! assert!(outcome.diagnostics.is_empty());
//! let spec = outcome.spec.unwrap();
//! assert_eq!(spec.topics[0].address, "/vehicle/status/gear");
//! assert_eq!(spec.properties[0].name, "gear_change_at_standstill");
//! ```

mod attributes;
mod check;
mod criterion;
mod definition;
mod diagnostic;
mod duration;
mod event;
mod exact;
mod fields;
mod finality;
mod foreign;
mod format;
mod functions;
mod graph;
mod identity;
mod lexer;
mod modules;
mod needs;
mod operators;
mod options;
mod outline;
mod part;
mod print;
mod reach;
mod render;
mod rye;
mod sources;
pub mod spec;
mod suggest;
mod syntax;
mod type_names;

pub use criterion::{Criterion, Demand};
pub use definition::{Definition, Definitions, NoDefinition, TypeConstant};
pub use diagnostic::{Code, Diagnostic, Label, Severity, Span};
pub use finality::Finality;
pub use format::format;
pub use functions::{FUNCTIONS, FunctionId, FunctionRow, Kernel, pattern};
pub use needs::{Mixing, NeededField, Needs};
pub use options::ParseOptions;
pub use outline::{
    Outline, Symbol, SymbolKind, WORDS, WordRow, attributes, declaration_words, is_name, meaning,
};
pub use print::Printed;
pub use reach::{Reach, ReachPart};
pub use rondel_event::ValueType;
pub use sources::{ImportedFile, Imports, LARGEST_SOURCES, SourcePlace, Sources};
pub use spec::places::{Call, Places};
pub use spec::{
    Aggregate, Below, BinaryOp, Bounds, Chain, ChainId, ChainMeasure, Class, Expectation, Expr, ExprId, Key,
    Machine, MachineId, Property, Schema, SchemaType, Slice, SliceId, Spec, State, Temporal, Test,
    TestMessage, TimeModel, Topic, Transition, UnaryOp, Variable, VariableId, binary_type, fold,
};
pub use suggest::nearest;

/// The result of parsing a text.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The specification, unless there is an error.
    pub spec: Option<Spec>,
    /// The errors and warnings, in order of location.
    pub diagnostics: Vec<Diagnostic>,
}

impl Outcome {
    fn new(spec: Option<Spec>, mut diagnostics: Vec<Diagnostic>) -> Outcome {
        diagnostics.sort_by_key(|d| d.span);
        // An expression used in two time models is checked twice.
        let mut kept: Vec<Diagnostic> = Vec::with_capacity(diagnostics.len());
        for diagnostic in diagnostics {
            let same_place = kept.iter().rev().take_while(|other| other.span == diagnostic.span);
            if !same_place.into_iter().any(|other| *other == diagnostic) {
                kept.push(diagnostic);
            }
        }
        let diagnostics = kept;
        let failed = diagnostics.iter().any(Diagnostic::is_error);
        Outcome { spec: spec.filter(|_| !failed), diagnostics }
    }

    /// Returns all diagnostics as text; see [`Diagnostic::render`].
    pub fn render(&self, source_name: &str, text: &str, colour: bool) -> String {
        let shown: Vec<_> = self.diagnostics.iter().map(|d| d.render(source_name, text, colour)).collect();
        shown.join("\n")
    }

    /// Returns all diagnostics as text; see [`Diagnostic::render_in`].
    pub fn render_in(&self, sources: &Sources, colour: bool) -> String {
        let shown: Vec<_> = self.diagnostics.iter().map(|d| d.render_in(sources, colour)).collect();
        shown.join("\n")
    }
}

/// The name of the only topic of a single formula.
pub const DEFAULT_TOPIC: &str = "trace";

/// Parses a specification in the Rondel language.
///
/// ```
/// let outcome = rondel_spec::parse("topic a { x: int }  property p = a.y > 0");
/// assert!(outcome.spec.is_none());
/// assert_eq!(outcome.diagnostics[0].message, "unknown field 'y' in topic 'a'");
/// ```
pub fn parse(text: &str) -> Outcome {
    parse_with(text, &ParseOptions::default())
}

/// Parses a specification with options; see [`parse`].
///
/// ```
/// use rondel_spec::{ParseOptions, TimeModel};
/// let options = ParseOptions { time: Some(TimeModel::Dense), ..ParseOptions::default() };
/// let outcome = rondel_spec::parse_with("topic a { x: bool } property p = once[0, 2] a.x", &options);
/// let spec = outcome.spec.unwrap();
/// assert_eq!(spec.print(spec.properties[0].formula).to_string(), "(once [0,2000000000] a.x)");
/// ```
pub fn parse_with(text: &str, options: &ParseOptions) -> Outcome {
    parse_text(text, options, None)
}

/// Parses a specification whose topics can name message types: `topic odom "/odom" : nav_msgs/msg/Odometry`. Their
/// fields and constants come from these definitions.
pub fn parse_typed(text: &str, options: &ParseOptions, types: &dyn Definitions) -> Outcome {
    parse_text(text, options, Some(types))
}

/// Parses a specification of several files; locations are offsets in [`Sources::text`]. If an import cannot be
/// followed, only the imports are reported: most other errors would be names of the missing file.
pub fn parse_sources(sources: &Sources, options: &ParseOptions, types: Option<&dyn Definitions>) -> Outcome {
    if !sources.problems().is_empty() {
        return Outcome::new(None, sources.problems().to_vec());
    }
    let mut diagnostics = Vec::new();
    let modules = sources.modules(&mut diagnostics);
    parse_files(sources.text(), &sources.spans(), modules, options, types, diagnostics)
}

/// Parses a text that is no file and can import none.
fn parse_text(text: &str, options: &ParseOptions, types: Option<&dyn Definitions>) -> Outcome {
    let refused = sources::refused(text);
    if !refused.is_empty() {
        return Outcome::new(None, refused);
    }
    let files = [Span::new(0, text.len())];
    parse_files(text, &files, modules::Modules::default(), options, types, Vec::new())
}

fn parse_files(
    text: &str,
    files: &[Span],
    modules: modules::Modules,
    options: &ParseOptions,
    types: Option<&dyn Definitions>,
    mut diagnostics: Vec<Diagnostic>,
) -> Outcome {
    let mut ast = syntax::parse_files(text, files, modules.into(), &mut diagnostics);
    check::define(&mut ast, types, &mut diagnostics);
    let spec = check::check(text, &ast, DEFAULT_TOPIC, options, &mut diagnostics);
    Outcome::new(Some(spec), diagnostics)
}

/// Parses one expression of the Rondel language without declarations. Names are fields of one topic,
/// [`DEFAULT_TOPIC`]; the property is called `formula`.
///
/// ```
/// let spec = rondel_spec::parse_formula("speed > 10 -> once[0,5] brake").spec.unwrap();
/// let property = &spec.properties[0];
/// assert_eq!(
///     spec.print(property.formula).to_string(),
///     "(or (not (> trace.speed 10.0)) (once [0,5] trace.brake))",
/// );
/// ```
pub fn parse_formula(formula: &str) -> Outcome {
    parse_formula_with(formula, &ParseOptions::default())
}

/// Parses one expression with options; see [`parse_formula`].
pub fn parse_formula_with(formula: &str, options: &ParseOptions) -> Outcome {
    let mut diagnostics = Vec::new();
    let ast = syntax::parse_single(formula, "formula", &mut diagnostics);
    let spec = check::check(formula, &ast, DEFAULT_TOPIC, options, &mut diagnostics);
    Outcome::new(Some(spec), diagnostics)
}

/// Parses an expression in Reelay's format over the fields of one topic, [`DEFAULT_TOPIC`] by default, into a
/// property of the given name.
///
/// A pair is false if its field was never received or has another type than the pair expects, so a formula is
/// always true or false, never unknown. `{}` is true.
///
/// ```
/// let formula = "{speed > 10} -> once[0:5]{brake: true}";
/// let spec = rondel_spec::parse_rye(formula, None, "brakes").spec.unwrap();
/// assert_eq!(
///     spec.print(spec.properties[0].formula).to_string(),
///     "(or (not (definitely (> trace.speed 10.0))) (once [0,5] (definitely trace.brake)))",
/// );
/// ```
pub fn parse_rye(formula: &str, topic: Option<&str>, property: &str) -> Outcome {
    parse_rye_with(formula, topic, property, &ParseOptions::default())
}

/// Parses an expression in Reelay's format with options; see [`parse_rye`]. By default, bounds count steps.
pub fn parse_rye_with(formula: &str, topic: Option<&str>, property: &str, options: &ParseOptions) -> Outcome {
    let model = options.time.unwrap_or_default();
    let topic = topic.unwrap_or(DEFAULT_TOPIC);
    let mut diagnostics = Vec::new();
    let mut graph = graph::Graph::default();
    let spec = graph.spec_mut();
    spec.topics =
        vec![Topic { name: topic.to_owned(), address: topic.to_owned(), type_name: None, schema: None }];
    let body = Span::new(0, formula.len());
    graph.at(body);
    let target = rye::Target {
        topic: rondel_event::TopicId(0),
        fields: None,
        model: Some(model),
        graph: &mut graph,
        diagnostics: &mut diagnostics,
    };
    let root = rye::formula(formula, body, target);
    let spec = root.map(|formula| {
        diagnostics.extend(check::constant_property(&graph, formula, property, body));
        let linear = options.linear && model == TimeModel::Dense;
        diagnostics.extend(check::not_piecewise_linear(&graph, formula, body).filter(|_| linear));
        let premises = graph.premises(formula);
        let property = Property { time: model, linear, premises, ..Property::new(property, formula) };
        graph.spec_mut().properties.push(property);
        graph.finish()
    });
    Outcome::new(spec, diagnostics)
}
