//! Instances of CycloneDDS and their log.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CString, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError, Weak};

use rondel_event::{Timestamp, TopicId};

use super::announced_node::{AnnouncedNode, Member};
use super::entity::{Entity, Qos};
use super::refused::Refusals;
use super::{DeclareError, Protection, Settings};
use crate::adapter::{Outage, Recovered};

/// One instance of CycloneDDS with its own sockets, threads and participant.
///
/// Dropping it leaves the network. Every entity created in it keeps it alive.
#[derive(Debug)]
pub(super) struct Domain {
    participant: Entity,
    /// Deleted after the participant, as fields are dropped in this order.
    _domain: Entity,
    /// Set to make blocked publishers return.
    closing: AtomicBool,
    /// Matches that were lost and restored.
    outages: Mutex<Vec<Outage>>,
    /// Samples fetched after such a loss, for each topic of subscriptions.
    recovered: Mutex<BTreeMap<TopicId, Recovered>>,
    /// The node in the graph of ROS 2, if there is one.
    node: OnceLock<Weak<AnnouncedNode>>,
    /// Refusals by DDS Security, if it is on.
    refusals: Option<Arc<Refusals>>,
}

impl Domain {
    pub(super) fn open(settings: &Settings, protection: Protection) -> Result<Domain, DeclareError> {
        static LOG: Once = Once::new();
        LOG.call_once(|| {
            // SAFETY: the callback lives as long as the process and needs no argument.
            unsafe { cyclors::dds_set_log_sink(Some(log), std::ptr::null_mut()) };
            // SAFETY: as above.
            unsafe { cyclors::dds_set_trace_sink(Some(trace), std::ptr::null_mut()) };
        });
        // CycloneDDS has one instance for each domain id. Unique internal ids with the same
        // `ExternalDomainId` in the configuration allow several instances in one domain. The documents of DDS
        // Security state ids, which CycloneDDS compares with the internal one: with them there is one instance.
        static NEXT: AtomicU32 = AtomicU32::new(1_000);
        let id = match settings.security {
            Some(_) => settings.domain,
            None => NEXT.fetch_add(1, Ordering::Relaxed),
        };
        let xml = CString::new(settings.xml())
            .map_err(|_| DeclareError::Name(settings.interface.clone().unwrap_or_default()))?;
        ERRORS.set(Some(String::new()));
        // SAFETY: `xml` is terminated and outlives the call, which copies it. The
        // environment's CYCLONEDDS_URI is not read when a domain is made with a configuration.
        let domain = unsafe { cyclors::dds_create_domain(id, xml.as_ptr()) };
        let domain = Entity::own(domain, "DDS domain").map_err(explained);
        ERRORS.set(None);
        let domain = domain?;
        // Participants of ROS 2 recognise each other by this.
        let enclave = if settings.node.is_some() { "enclave=/;" } else { "" };
        let secure = settings.security.as_ref().map(|files| files.properties()).unwrap_or_default();
        let qos = Qos::new().user_data(enclave).properties(&secure)?;
        let refusals = settings.security.as_ref().map(|_| Refusals::begin(id, protection));
        ERRORS.set(Some(String::new()));
        // SAFETY: a QoS that outlives the call, which copies it; null is allowed for the listener.
        let participant = unsafe { cyclors::dds_create_participant(id, qos.as_ptr(), std::ptr::null()) };
        let participant = Entity::own(participant, "DDS participant").map_err(explained);
        let participant = participant.map_err(|error| match (&settings.security, error) {
            (Some(_), DeclareError::Network { reason, .. }) => security_refused(&reason),
            (_, error) => error,
        });
        ERRORS.set(None);
        let participant = participant?;
        Ok(Domain {
            participant,
            _domain: domain,
            closing: AtomicBool::new(false),
            outages: Mutex::default(),
            recovered: Mutex::default(),
            node: OnceLock::new(),
            refusals,
        })
    }

    /// Returns the refusals by DDS Security, if it is on.
    pub(super) fn refusals(&self) -> Option<&Arc<Refusals>> {
        self.refusals.as_ref()
    }

    pub(super) fn participant(&self) -> i32 {
        self.participant.handle()
    }

    /// Sets the node of all readers and writers created from here on.
    pub(super) fn set_node(&self, node: &Arc<AnnouncedNode>) {
        // There is one node, set once.
        _ = self.node.set(Arc::downgrade(node));
    }

    /// Adds a reader or writer of a topic of ROS 2 to the node, if there is one, until the result is dropped.
    pub(super) fn announce(&self, topic: &str, entity: &Entity, publishes: bool) -> Option<Member> {
        self.node.get()?.upgrade()?.add(topic, entity, publishes)
    }

    /// Adds a match that was lost and restored; at most 1,024 are remembered.
    pub(super) fn add_outage(&self, outage: Outage) {
        let mut outages = self.outages.lock().unwrap_or_else(PoisonError::into_inner);
        if outages.len() < 1024 {
            outages.push(outage);
        }
    }

    /// Counts fetched samples, the first of them missed at this time.
    pub(super) fn add_recovered(&self, topic: TopicId, count: u64, from: Timestamp) {
        if count > 0 {
            let mut all = self.recovered.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(topic).or_default().add(count, from);
        }
    }

    /// Returns the samples fetched so far.
    pub(super) fn recovered(&self) -> Vec<(TopicId, Recovered)> {
        let all = self.recovered.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(topic, recovered)| (*topic, *recovered)).collect()
    }

    /// Returns the matches that were lost and restored.
    pub(super) fn outages(&self) -> Vec<Outage> {
        self.outages.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    pub(super) fn set_closing(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }
}

thread_local! {
    /// While `Some`, collects the first error that the library logs on this thread, for its caller to return.
    static ERRORS: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Returns the error with the logged reason: the return code alone does not explain it.
fn explained(error: DeclareError) -> DeclareError {
    match ERRORS.take() {
        Some(reason) if !reason.is_empty() => DeclareError::Network { what: "CycloneDDS", reason },
        _ => error,
    }
}

/// Returns the error of a participant whose files CycloneDDS refuses.
fn security_refused(reason: &str) -> DeclareError {
    let reason = reason.rsplit_once("(code: ").map_or(reason, |(reason, _)| reason);
    let hint = match reason.contains("Subject name") {
        true => {
            "; `subject_name` in the permissions must be the subject of the certificate, such as CN=robot,O=Fleet"
        }
        false => "",
    };
    DeclareError::Network { what: "participant with DDS Security", reason: format!("{reason}{hint}") }
}

/// Forwards the log of the library to `tracing`; by default it writes to standard error.
unsafe extern "C" fn log(_: *mut c_void, data: *const cyclors::dds_log_data_t) {
    // SAFETY: the library passes a valid pointer for the time of the call.
    let Some(data) = (unsafe { data.as_ref() }) else { return };
    // SAFETY: of the same origin.
    let text = unsafe { message_of(data) };
    let text = text.trim();
    if Refusals::read(data.domid, text) {
        tracing::debug!(target: "cyclonedds", "{text}");
        return;
    }
    if data.priority & (cyclors::DDS_LC_FATAL | cyclors::DDS_LC_ERROR) != 0 {
        // Not `with`: this thread may be about to end, and a panic must not cross into the library.
        let kept = ERRORS.try_with(|errors| match errors.try_borrow_mut().as_deref_mut() {
            Ok(Some(errors)) => {
                if errors.is_empty() {
                    errors.push_str(text.trim_end_matches('.'));
                }
                true
            }
            _ => false,
        });
        if kept != Ok(true) {
            tracing::error!(target: "cyclonedds", "{text}");
        }
    } else if data.priority & cyclors::DDS_LC_WARNING != 0 {
        tracing::warn!(target: "cyclonedds", "{text}");
    } else {
        tracing::debug!(target: "cyclonedds", "{text}");
    }
}

/// Reads the trace of the library, which only domains with DDS Security have.
unsafe extern "C" fn trace(_: *mut c_void, data: *const cyclors::dds_log_data_t) {
    // SAFETY: the library passes a valid pointer for the time of the call.
    let Some(data) = (unsafe { data.as_ref() }) else { return };
    // Logged texts come to both callbacks.
    let logged =
        cyclors::DDS_LC_FATAL | cyclors::DDS_LC_ERROR | cyclors::DDS_LC_WARNING | cyclors::DDS_LC_INFO;
    if data.priority & logged == 0 {
        // SAFETY: of the same origin.
        Refusals::read(data.domid, &unsafe { message_of(data) });
    }
}

/// Returns a text that the library logs.
///
/// # Safety
/// The message is null or has as many bytes as stated, for the time of the call.
unsafe fn message_of(data: &cyclors::dds_log_data_t) -> std::borrow::Cow<'_, str> {
    if data.message.is_null() {
        return std::borrow::Cow::Borrowed("");
    }
    // SAFETY: by this function's contract.
    String::from_utf8_lossy(unsafe { std::slice::from_raw_parts(data.message.cast::<u8>(), data.size) })
}
