//! The reports of a check: requests on the command line, content and destinations.

mod about;
mod mcap_report;

use std::io::Write;
use std::path::{Path, PathBuf};

use rondel_event::{Value, Verdict};
use rondel_report::html::About;
use rondel_report::{
    Collector, Judged, Loss, Outcome, Recording, Results, Signal, github, html, junit, sarif, svg, tap,
};
use rondel_runtime::{Course, Extent, Notice, PropertyStatistics, Report, Summary, VacuousKind, looks_ahead};

use crate::output::Output;
use crate::output::summary::{Reasons, standing};
use crate::specification::{Specification, claims};

/// A report requested with `--report`: `junit=FILE`, or `tap` for standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    form: Form,
    /// Destination; standard output if `None`.
    file: Option<PathBuf>,
}

/// The forms of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Junit,
    Sarif,
    Tap,
    Github,
    Json,
    Html,
    Svg,
    Mcap,
}

const FORMS: [(&str, Form); 8] = [
    ("junit", Form::Junit),
    ("sarif", Form::Sarif),
    ("tap", Form::Tap),
    ("github", Form::Github),
    ("json", Form::Json),
    ("html", Form::Html),
    ("svg", Form::Svg),
    ("mcap", Form::Mcap),
];

impl std::str::FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Wanted, String> {
        let (name, file) = match text.split_once('=') {
            Some((name, file)) => (name, Some(file)),
            None => (text, None),
        };
        let names: Vec<&str> = FORMS.iter().map(|(name, _)| *name).collect();
        let form = FORMS.iter().find(|(known, _)| *known == name).map(|(_, form)| *form);
        let form = form
            .ok_or_else(|| format!("`{name}` is no form of a report; the forms are {}", names.join(", ")))?;
        match file {
            Some("") => Err(format!("the file is missing: write {name}=FILE, or {name} for standard output")),
            None | Some("-") if form == Form::Mcap => {
                Err("an MCAP file is not written to standard output: write mcap=FILE".to_owned())
            }
            file => Ok(Wanted { form, file: file.filter(|file| *file != "-").map(PathBuf::from) }),
        }
    }
}

impl Wanted {
    /// A picture in a file, by the end of its name.
    ///
    /// # Errors
    /// The allowed names.
    pub fn picture(file: PathBuf) -> Result<Wanted, String> {
        let form = match file.extension().and_then(|extension| extension.to_str()) {
            Some("svg") => Form::Svg,
            Some("html" | "htm") => Form::Html,
            _ => return Err(format!("{}: the name of the picture ends in .svg or .html", file.display())),
        };
        Ok(Wanted { form, file: Some(file) })
    }

    /// Whether standard output belongs to this report, so that nothing else is written there.
    fn takes_output(&self) -> bool {
        // Annotations stand between other lines of a log.
        self.file.is_none() && self.form != Form::Github
    }

    fn text(&self, results: &Results, about: &About, strict: bool) -> String {
        match self.form {
            Form::Junit => junit::write(results, strict),
            Form::Sarif => sarif::write(results, strict),
            Form::Tap => tap::write(results, strict),
            Form::Github => github::write(results, strict),
            Form::Json => results.json(),
            Form::Html => html::write(results, about),
            Form::Svg => svg::write(results),
            // It is no text, and always has a file.
            Form::Mcap => String::new(),
        }
    }
}

/// Reason why there can be no reports.
pub struct Refused {
    /// The reason as a sentence.
    pub reason: String,
    /// Whether the options are wrong, and not the place where a report shall be written.
    pub is_misuse: bool,
}

/// The reports of a check while it runs.
#[derive(Clone)]
pub struct Reports {
    wanted: Vec<Wanted>,
    results: Results,
    /// Origin of the results: command and specification.
    about: About,
    /// The verdicts of the recording that is being checked.
    collector: Option<Collector>,
    /// Where messages of it were missed, if the time is known, and the names of the properties that depend on them.
    losses: Vec<(Option<i64>, Vec<String>)>,
    /// The robustness of the first property over time, if it is wanted.
    robustness: Option<Course>,
    /// Properties with future operators, for which every verdict is taken.
    ahead: Vec<bool>,
}

/// The signal of [`Reports::kept`] with the robustness of the first property.
pub const ROBUSTNESS: &str = "robustness";

impl Reports {
    /// Creates results without a destination; with the robustness of the first property as a signal if `robustness`.
    pub fn kept(specification: &Specification, robustness: bool) -> Reports {
        let results = Results::new(&specification.source, claims(specification));
        let robustness = robustness.then(Course::default);
        Reports {
            wanted: Vec::new(),
            results,
            about: About::default(),
            collector: None,
            losses: Vec::new(),
            robustness,
            ahead: look_ahead(specification),
        }
    }

    /// The results.
    pub fn into_results(self) -> Results {
        self.results
    }

    /// The reports that are wanted of a specification; none if no report is.
    ///
    /// # Errors
    /// [`Refused`] if a file cannot be written, or two reports are written to the same place.
    pub fn new(wanted: &[Wanted], specification: &Specification) -> Result<Option<Reports>, Refused> {
        if wanted.is_empty() {
            return Ok(None);
        }
        for (i, one) in wanted.iter().enumerate() {
            if wanted[..i].iter().any(|other| other.file == one.file) {
                let place =
                    one.file.as_ref().map_or("standard output".into(), |file| file.display().to_string());
                let reason = format!("two reports would be written to {place}");
                return Err(Refused { reason, is_misuse: true });
            }
            // Better now than after an hour of checking.
            let writable = one.file.as_deref().map_or(Ok(()), writable);
            writable.map_err(|reason| Refused { reason, is_misuse: false })?;
        }
        let results = Results::new(&specification.source, claims(specification));
        Ok(Some(Reports {
            wanted: wanted.to_vec(),
            results,
            about: about::of(specification),
            collector: None,
            losses: Vec::new(),
            robustness: None,
            ahead: look_ahead(specification),
        }))
    }

    /// Whether standard output belongs to a report.
    pub fn take_output(&self) -> bool {
        self.wanted.iter().any(Wanted::takes_output)
    }

    /// Whether all reports are written to files, so that none needs standard output.
    pub fn are_in_files(&self) -> bool {
        self.wanted.iter().all(|wanted| wanted.file.is_some())
    }

    /// Begins a recording.
    pub fn begin(&mut self) {
        let mut collector = Collector::new(self.results.properties.len());
        collector.take_all_of(&self.ahead);
        self.collector = Some(collector);
        self.losses.clear();
        self.robustness = self.robustness.take().map(|_| Course::default());
    }

    /// Takes a verdict on the recording.
    #[inline]
    pub fn take(&mut self, report: &Report<'_>) {
        if let Some(collector) = &mut self.collector {
            collector.take(report);
        }
        if let Some(course) = self.robustness.as_mut().filter(|_| report.property().position == 0) {
            let time = report.about().unwrap_or(report.time()).as_nanos();
            course.add(time, report.robustness().map(Value::Float));
        }
    }

    /// Takes a notice about the recording: verdicts became inconclusive as messages were missed.
    pub fn note(&mut self, notice: &Notice) {
        if notice.kind != "blind" {
            return;
        }
        let member = |name: &str| notice.members.iter().find(|(own, _)| *own == name).map(|(_, value)| value);
        let from = member("from").and_then(serde_json::Value::as_f64).map(|from| (from * 1e9).round() as i64);
        let names = member("properties").and_then(serde_json::Value::as_array).into_iter().flatten();
        self.losses.push((from, names.filter_map(|name| Some(name.as_str()?.to_owned())).collect()));
    }

    /// The losses of the recording, in order of time.
    fn take_losses(&mut self, properties: &[Judged], begin: i64, end: i64) -> Vec<Loss> {
        let taken = std::mem::take(&mut self.losses);
        let loss = |(from, names): (Option<i64>, Vec<String>)| {
            let from_ns = from.unwrap_or(begin);
            let of = self.results.properties.iter().zip(properties);
            let of = of.filter(|(claim, _)| names.contains(&claim.name));
            let until = of.filter_map(|(_, judged)| judged.inconclusive_until(from_ns, end)).max();
            Loss { from_ns, until_ns: until.unwrap_or(from_ns).max(from_ns), properties: names }
        };
        let mut losses: Vec<Loss> = taken.into_iter().map(loss).collect();
        losses.sort_by_key(|loss| loss.from_ns);
        losses
    }

    /// Ends the recording with this name.
    pub fn end(&mut self, name: &str, reasons: &Reasons<'_>, ended: Ended) {
        let summary = reasons.summary;
        let Some(collector) = self.collector.take() else { return };
        let judge = |i: usize| {
            let (verdict, remark) =
                summary.properties.get(i).map_or((Verdict::Inconclusive, String::new()), standing);
            let vacuous = reasons.of(i);
            let outcome = match verdict {
                Verdict::Violated => Outcome::Violated,
                Verdict::Inconclusive => Outcome::Inconclusive,
                Verdict::Satisfied if ended.inconclusive.is_some() => Outcome::Inconclusive,
                Verdict::Satisfied if vacuous.is_empty() => Outcome::Satisfied,
                Verdict::Satisfied => Outcome::Vacuous,
            };
            let remark = match &ended.inconclusive {
                Some(reason) if verdict == Verdict::Satisfied => reason.clone(),
                _ => remark,
            };
            (outcome, remark, vacuous.into_iter().map(|reason| reason.text).collect())
        };
        let mut properties = collector.finish(judge);
        for (i, judged) in properties.iter_mut().enumerate() {
            let reasons = summary.vacuous(i);
            judged.is_asserted = summary.properties.get(i).is_some_and(|statistics| statistics.is_asserted);
            judged.is_assert = summary.properties.get(i).is_some_and(|statistics| statistics.is_assert());
            if let Some(statistics) = summary.properties.get(i) {
                measure(judged, statistics);
            }
            judged.only_premise = reasons.iter().all(|reason| reason.kind == VacuousKind::Premise);
        }
        let course = self.robustness.as_ref().map(|course| rondel_runtime::Signal {
            name: ROBUSTNESS.to_owned(),
            values: course.values().collect(),
            thresholds: vec![0.0],
            upper: Vec::new(),
        });
        let [begin, end] =
            summary.span.map_or([0; 2], |(begin, end)| [begin, end].map(|time| time.as_nanos()));
        let losses = self.take_losses(&properties, begin, end);
        self.results.recordings.push(Recording {
            name: name.to_owned(),
            problem: None,
            remarks: ended.remarks,
            events: ended.events,
            begin: summary.span.map(|(begin, _)| begin.as_nanos()),
            end: summary.span.map(|(_, end)| end.as_nanos()),
            seconds: ended.seconds,
            properties,
            signals: ended.signals.into_iter().chain(course.as_ref().map(Signal::from)).collect(),
            losses,
        });
    }

    /// Marks the recording with this name as not read, or not to its end.
    pub fn unread(&mut self, name: &str, problem: &str) {
        let problem = Some(problem.to_owned());
        match self.results.recordings.last_mut() {
            Some(last) if last.name == name && last.problem.is_none() => last.problem = problem,
            _ => {
                let recording = Recording { name: name.to_owned(), problem, ..Recording::default() };
                self.results.recordings.push(recording);
            }
        }
    }

    /// Takes the results of the recordings that were checked, to be put among those of others.
    pub fn take_recordings(&mut self) -> Vec<Recording> {
        std::mem::take(&mut self.results.recordings)
    }

    /// Sets the results of all recordings.
    pub fn set_recordings(&mut self, recordings: Vec<Recording>) {
        self.results.recordings = recordings;
    }

    /// Writes all reports, with the summary over all recordings.
    ///
    /// # Errors
    /// A sentence if one could not be written; the others are.
    pub fn write<W: Write>(
        mut self,
        whole: &Summary,
        strict: bool,
        out: &mut Output<W>,
    ) -> Result<(), String> {
        // A topic that came in another recording is not missing: that is no failure of the check.
        for recording in &mut self.results.recordings {
            for (i, judged) in recording.properties.iter_mut().enumerate() {
                if judged.outcome == Outcome::Vacuous && whole.vacuous(i).is_empty() {
                    judged.outcome = Outcome::Satisfied;
                    judged.remark = format!("in this recording vacuous: {}", judged.vacuous.join("; "));
                    judged.vacuous.clear();
                }
            }
        }
        let mut failed = Vec::new();
        for wanted in &self.wanted {
            let text = wanted.text(&self.results, &self.about, strict);
            let written = match &wanted.file {
                Some(file) if wanted.form == Form::Mcap => mcap_report::write(&self.results, file)
                    .map_err(|error| format!("cannot write the report {}: {error}", file.display())),
                Some(file) => rondel_recording::durable::replace(file, text.as_bytes())
                    .map_err(|error| format!("cannot write the report {}: {error}", file.display())),
                None => {
                    // A failure is seen when the output ends.
                    out.write(text.as_bytes());
                    Ok(())
                }
            };
            failed.extend(written.err());
        }
        if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
    }
}

/// Result of reading a recording.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// Reason why satisfied properties are inconclusive, if there is one: messages are missing, for example.
    pub inconclusive: Option<String>,
    /// Remarks about skipped and unusable messages.
    pub remarks: Vec<String>,
    /// The number of messages that were checked.
    pub events: u64,
    /// Duration of the check, in seconds.
    pub seconds: f64,
    /// The fields over the whole recording, if they are to be drawn.
    pub signals: Vec<Signal>,
}

/// Adds for how long a property was violated, and its least robustness.
fn measure(judged: &mut Judged, statistics: &PropertyStatistics) {
    judged.least_robustness = statistics.least_robustness.filter(|least| least.is_finite());
    let Some(violated) = statistics.in_violation() else { return };
    let nanos = |extent: Extent| i64::try_from(extent.nanos).unwrap_or(i64::MAX);
    judged.violated_ns = Some(nanos(violated.total));
    judged.longest_ns = Some(violated.longest.as_ref().map_or(0, |longest| nanos(longest.extent)));
    judged.longest_from_ns = violated.longest.as_ref().map(|longest| longest.begin.as_nanos());
    judged.is_at_least = violated.is_at_least;
}

/// Checks whether a file can be written at its place.
fn writable(file: &Path) -> Result<(), String> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if file.is_dir() {
        return Err(format!("cannot write the report {}: it is a folder", file.display()));
    }
    if !folder.is_dir() {
        return Err(format!(
            "cannot write the report {}: there is no folder {}",
            file.display(),
            folder.display()
        ));
    }
    Ok(())
}

/// Marks properties with future operators: their verdicts about earlier times come after those about later ones.
pub fn look_ahead(specification: &Specification) -> Vec<bool> {
    let spec = &specification.spec;
    spec.properties.iter().map(|property| looks_ahead(spec, property.formula)).collect()
}
