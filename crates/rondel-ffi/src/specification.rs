//! Compiled specifications and their diagnostics.

use std::ffi::c_char;

use rondel_spec::{Outcome, Severity, Spec};

use crate::arguments::{Out, reference, text};
use crate::status::{Failure, RONDEL_ERROR_SPECIFICATION, RONDEL_OK, Status, guard};
use crate::text::{Text, terminated};

/// Severity of a diagnostic: the specification cannot be used.
pub const RONDEL_ERROR: i32 = 0;
/// Severity of a diagnostic: part of the specification is probably not what the author meant.
pub const RONDEL_WARNING: i32 = 1;

/// The name of a specification in rendered diagnostics.
const NAME: &str = "specification";

/// A compiled specification, or the diagnostics of one with mistakes.
pub struct Specification {
    spec: Option<Spec>,
    diagnostics: Vec<Found>,
    /// All diagnostics for a terminal. This and the texts below have a NUL at their end.
    rendered: Box<[u8]>,
    properties: Vec<Box<[u8]>>,
    topics: Vec<Box<[u8]>>,
}

/// A diagnostic with its texts.
struct Found {
    code: Box<[u8]>,
    message: Box<[u8]>,
    help: Box<[u8]>,
    start: usize,
    end: usize,
    line: usize,
    column: usize,
    severity: i32,
}

/// A diagnostic. Its texts are valid until the specification is freed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Diagnostic {
    /// The code, such as `E0301`.
    pub code: Text,
    /// The problem, in one sentence.
    pub message: Text,
    /// The way out; empty if none is known.
    pub help: Text,
    /// Its place in the text: the first byte.
    pub start: usize,
    /// The byte after its place.
    pub end: usize,
    /// The line of `start`, from 1.
    pub line: usize,
    /// The column of `start` in characters, from 1.
    pub column: usize,
    /// [`RONDEL_ERROR`] or [`RONDEL_WARNING`].
    pub severity: i32,
}

impl Specification {
    fn new(text: &str, outcome: Outcome) -> Specification {
        let rendered = terminated(&outcome.render(NAME, text, false));
        let found = |diagnostic: &rondel_spec::Diagnostic| {
            let before = text.get(..diagnostic.span.start).unwrap_or(text);
            let line = before.rsplit('\n').next().unwrap_or(before);
            Found {
                code: terminated(diagnostic.code.as_str()),
                message: terminated(&diagnostic.message),
                help: terminated(diagnostic.help.as_deref().unwrap_or_default()),
                start: diagnostic.span.start,
                end: diagnostic.span.end,
                line: before.matches('\n').count() + 1,
                column: line.chars().count() + 1,
                severity: if diagnostic.severity == Severity::Error { RONDEL_ERROR } else { RONDEL_WARNING },
            }
        };
        let diagnostics = outcome.diagnostics.iter().map(found).collect();
        let spec = outcome.spec;
        let properties = spec.iter().flat_map(|spec| &spec.properties);
        let topics = spec.iter().flat_map(|spec| spec.declared());
        Specification {
            diagnostics,
            rendered,
            properties: properties.map(|property| terminated(&property.name)).collect(),
            topics: topics.map(|topic| terminated(&topic.name)).collect(),
            spec,
        }
    }

    /// The specification.
    ///
    /// # Errors
    /// It has mistakes.
    pub(crate) fn spec(&self) -> Result<&Spec, Failure> {
        self.spec.as_ref().ok_or_else(|| self.mistakes())
    }

    fn mistakes(&self) -> Failure {
        let text = self.rendered.strip_suffix(b"\0").unwrap_or_default();
        Failure::new(RONDEL_ERROR_SPECIFICATION, String::from_utf8_lossy(text))
    }
}

/// Compiles a specification. With mistakes, the status is [`RONDEL_ERROR_SPECIFICATION`], and the result has the
/// diagnostics; it must be freed as well.
///
/// # Safety
/// See [pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_specification_compile(
    source: *const c_char,
    length: usize,
    out: *mut *mut Specification,
) -> Status {
    guard(|| {
        // SAFETY: the contract of this function.
        let out = unsafe { Out::new("out", out)? };
        out.set(std::ptr::null_mut());
        // SAFETY: the contract of this function.
        let source = unsafe { text("source", source, length)? };
        let specification = Box::new(Specification::new(source, rondel_spec::parse(source)));
        let outcome = specification.spec().map(|_| RONDEL_OK);
        out.set(Box::into_raw(specification));
        outcome
    })
}

/// Frees a specification. Monitors that were opened from it stay. Null is allowed.
///
/// # Safety
/// See [pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_specification_free(specification: *mut Specification) {
    guard(|| {
        if !specification.is_null() {
            // SAFETY: the contract of this function: it comes from `Box::into_raw`.
            drop(unsafe { Box::from_raw(specification) });
        }
        Ok(RONDEL_OK)
    });
}

/// Returns the number of diagnostics; 0 for null.
///
/// # Safety
/// See [pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_specification_diagnostics(specification: *const Specification) -> usize {
    // SAFETY: the contract of this function.
    unsafe { count(specification, |of| of.diagnostics.len()) }
}

/// Returns the number of properties; 0 for null.
///
/// # Safety
/// See [pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_specification_properties(specification: *const Specification) -> usize {
    // SAFETY: the contract of this function.
    unsafe { count(specification, |of| of.properties.len()) }
}

/// Returns the number of topics; 0 for null.
///
/// # Safety
/// See [pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_specification_topics(specification: *const Specification) -> usize {
    // SAFETY: the contract of this function.
    unsafe { count(specification, |of| of.topics.len()) }
}

/// # Safety
/// See [pointers](crate#pointers).
unsafe fn count(specification: *const Specification, number: impl FnOnce(&Specification) -> usize) -> usize {
    // SAFETY: the contract of this function.
    unsafe { specification.as_ref() }.map_or(0, number)
}

/// Returns a diagnostic by its position.
///
/// # Safety
/// See [pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_specification_diagnostic(
    specification: *const Specification,
    index: usize,
    out: *mut Diagnostic,
) -> Status {
    guard(|| {
        // SAFETY: the contract of this function.
        let (of, out) = unsafe { (reference("specification", specification)?, Out::new("out", out)?) };
        let found = at("diagnostic", &of.diagnostics, index)?;
        out.set(Diagnostic {
            code: Text::before_nul(&found.code),
            message: Text::before_nul(&found.message),
            help: Text::before_nul(&found.help),
            start: found.start,
            end: found.end,
            line: found.line,
            column: found.column,
            severity: found.severity,
        });
        Ok(RONDEL_OK)
    })
}

/// Returns all diagnostics as a text for a terminal, valid until the specification is freed; empty without any.
///
/// # Safety
/// See [pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_specification_rendered(specification: *const Specification) -> Text {
    // SAFETY: the contract of this function.
    unsafe { specification.as_ref() }.map_or(Text::EMPTY, |of| Text::before_nul(&of.rendered))
}

/// Returns the name of a property by its position, valid until the specification is freed.
///
/// # Safety
/// See [pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_specification_property(
    specification: *const Specification,
    index: usize,
    out: *mut Text,
) -> Status {
    // SAFETY: the contract of this function.
    unsafe { name("property", specification, |of| &of.properties, index, out) }
}

/// Returns the name of a topic by its position, valid until the specification is freed.
///
/// # Safety
/// See [pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_specification_topic(
    specification: *const Specification,
    index: usize,
    out: *mut Text,
) -> Status {
    // SAFETY: the contract of this function.
    unsafe { name("topic", specification, |of| &of.topics, index, out) }
}

/// # Safety
/// See [pointers](crate#pointers).
unsafe fn name(
    kind: &str,
    specification: *const Specification,
    names: impl FnOnce(&Specification) -> &[Box<[u8]>],
    index: usize,
    out: *mut Text,
) -> Status {
    guard(|| {
        // SAFETY: the contract of this function.
        let (of, out) = unsafe { (reference("specification", specification)?, Out::new("out", out)?) };
        out.set(Text::before_nul(at(kind, names(of), index)?));
        Ok(RONDEL_OK)
    })
}

/// The entry at a position.
fn at<'s, T>(kind: &str, all: &'s [T], index: usize) -> Result<&'s T, Failure> {
    let missing = || Failure::argument(format!("there is no {kind} {index}: there are {}", all.len()));
    all.get(index).ok_or_else(missing)
}
