/* Rondel in C: checks messages against a written specification.
 *
 *   1. rondel_specification_compile: text -> specification, or diagnostics.
 *   2. rondel_monitor_open: specification -> monitor.
 *   3. rondel_monitor_push, rondel_monitor_push_batch, rondel_monitor_push_columns, rondel_monitor_advance.
 *   4. rondel_monitor_next_report, or rondel_monitor_take_reports, after each of them.
 *   5. rondel_monitor_finish, rondel_monitor_summary.
 *   6. rondel_monitor_free, rondel_specification_free.
 *
 * Errors: functions return a status, negative for an error. rondel_last_error returns its message. No function ends the
 * process and no panic of Rust leaves the library. Checked are null pointers, unknown constants, text that is not UTF-8,
 * topics of another monitor, calls after the end of the trace, and the contents of payloads, columns and snapshots. Not
 * checked, and undefined: pointers to freed or too little memory, a handle that was freed, also by freeing it twice.
 *
 * Memory: a handle or bytes from the library are freed once, by the function beside them. Texts in results belong to the
 * library and are valid until the next call with the same monitor; those of a specification until it is freed. A NUL
 * follows each, which the length does not count. The library keeps no pointer of the caller after a call.
 *
 * Threads: handles may move between threads. A specification may be used by several at once, except to free it. Calls of
 * several threads with one monitor take turns; texts in results are then valid only until the call of any thread, so take
 * reports in one. rondel_last_error is of its thread.
 *
 * Times are nanoseconds in 64 bits, since any time that all messages share.
 *
 * Compatibility: RONDEL_ABI_VERSION is incremented when anything here changes or goes. New functions and constants keep
 * it. Compare it with rondel_abi_version() at the start, where the library is loaded apart from the program.
 */
#ifndef RONDEL_H
#define RONDEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RONDEL_ABI_VERSION 1

/* Returns RONDEL_ABI_VERSION of the library. */
uint32_t rondel_abi_version(void);

/* Returns the version of Rondel, such as "0.1.0". */
const char *rondel_version(void);

/* The outcome of a call: negative for an error. */
typedef int32_t rondel_status;
enum {
  RONDEL_OK = 0,
  /* There is nothing more: no report, no notice, no deadline. */
  RONDEL_END = 1,
  /* An argument is wrong. Nothing has happened. */
  RONDEL_ERROR_ARGUMENT = -1,
  /* The specification has mistakes, or cannot be monitored with these options. */
  RONDEL_ERROR_SPECIFICATION = -2,
  /* A message cannot be read. It is counted; verdicts that depend on it are inconclusive. */
  RONDEL_ERROR_MESSAGE = -3,
  /* Columns cannot be read. Nothing has happened. */
  RONDEL_ERROR_COLUMNS = -4,
  /* A snapshot is damaged, of another version, or of another specification. */
  RONDEL_ERROR_SNAPSHOT = -5,
  /* The trace of the monitor has ended. */
  RONDEL_ERROR_FINISHED = -6,
  /* A mistake in Rondel. The monitor refuses further calls: free it, and restore one from a snapshot. */
  RONDEL_ERROR_PANIC = -7
};

/* Returns the message of the last error on this thread, in UTF-8; "" if there was none. It is valid until another call on
 * this thread fails. */
const char *rondel_last_error(void);

/* Length of a text argument or a payload that ends with a NUL. */
#define RONDEL_NUL_TERMINATED SIZE_MAX

/* A text in UTF-8. */
typedef struct rondel_text {
  const char *data;
  size_t length;
} rondel_text;

/* A rondel_text of a literal. */
#define RONDEL_TEXT(literal) { (literal), sizeof(literal) - 1 }

/* Bytes of the library, freed by rondel_bytes_free, or of the caller. */
typedef struct rondel_bytes {
  uint8_t *data;
  size_t length;
} rondel_bytes;

/* Frees bytes from a function of the library, unchanged. Bytes whose data is null are allowed. */
void rondel_bytes_free(rondel_bytes bytes);

/* ---- Specifications ---- */

/* A compiled specification, or the diagnostics of one with mistakes. */
typedef struct rondel_specification rondel_specification;

/* Severities of diagnostics. */
enum {
  /* The specification cannot be used. */
  RONDEL_ERROR = 0,
  /* Part of it is probably not what the author meant. */
  RONDEL_WARNING = 1
};

/* A diagnostic. */
typedef struct rondel_diagnostic {
  /* The code: see docs/reference/diagnostics.md. */
  rondel_text code;
  /* The problem, in one sentence. */
  rondel_text message;
  /* The way out; empty if none is known. */
  rondel_text help;
  /* Its place in the text: the first byte, and the byte after the last. */
  size_t start;
  size_t end;
  /* Line and column of start, from 1; columns count characters. */
  size_t line;
  size_t column;
  /* RONDEL_ERROR or RONDEL_WARNING. */
  int32_t severity;
} rondel_diagnostic;

/* Compiles a specification. With mistakes, the status is RONDEL_ERROR_SPECIFICATION, and *out has the diagnostics and must
 * be freed as well. After another error, *out is null. */
rondel_status rondel_specification_compile(const char *source, size_t length, rondel_specification **out);

/* Frees a specification. Monitors that were opened from it stay. Null is allowed. */
void rondel_specification_free(rondel_specification *specification);

/* Returns the number of diagnostics, properties, topics; 0 for null. A specification with mistakes has no properties and
 * topics. */
size_t rondel_specification_diagnostics(const rondel_specification *specification);
size_t rondel_specification_properties(const rondel_specification *specification);
size_t rondel_specification_topics(const rondel_specification *specification);

/* Returns a diagnostic, the name of a property, the name of a topic, by position. */
rondel_status rondel_specification_diagnostic(const rondel_specification *specification, size_t index,
                                              rondel_diagnostic *out);
rondel_status rondel_specification_property(const rondel_specification *specification, size_t index,
                                            rondel_text *out);
rondel_status rondel_specification_topic(const rondel_specification *specification, size_t index, rondel_text *out);

/* Returns all diagnostics for a terminal, with their lines; empty without any. */
rondel_text rondel_specification_rendered(const rondel_specification *specification);

/* ---- Monitors ---- */

/* Checks messages against a specification. */
typedef struct rondel_monitor rondel_monitor;

/* The verdicts that are reported. */
enum {
  /* A verdict that differs from the one before it, and the first. */
  RONDEL_EMIT_CHANGE = 0,
  /* A verdict for every message and property. */
  RONDEL_EMIT_EVERY = 1,
  /* A verdict that becomes violated. */
  RONDEL_EMIT_VIOLATIONS = 2
};

/* Encodings of payloads. */
enum {
  /* JSON, in which a number may be NaN. Topics whose messages are columns have this encoding, too. */
  RONDEL_JSON = 0,
  RONDEL_CDR = 1,
  RONDEL_PROTOBUF = 2,
  RONDEL_FLATBUFFERS = 3,
  RONDEL_CBOR = 4,
  RONDEL_MSGPACK = 5,
  RONDEL_PLAIN = 6,
  RONDEL_SPARKPLUG_B = 7,
  RONDEL_SENML = 8,
  RONDEL_XML = 9
};

/* The encoding of a topic. */
typedef struct rondel_input {
  /* The name of the topic in the specification. */
  rondel_text topic;
  /* The name of the message type, for RONDEL_CDR, RONDEL_PROTOBUF and RONDEL_FLATBUFFERS; otherwise empty. */
  rondel_text type_name;
  /* Its definition: IDL for RONDEL_CDR, or null for a common type of ROS 2; a FileDescriptorSet for RONDEL_PROTOBUF; a
   * binary schema (.bfbs) for RONDEL_FLATBUFFERS. */
  const void *definition;
  size_t definition_length;
  int32_t encoding;
} rondel_input;

/* Options of a monitor. All zero are the defaults. */
typedef struct rondel_options {
  /* Topics with another encoding than that below, or with a type. */
  const rondel_input *inputs;
  size_t input_count;
  /* Limit of the instances of `for each`, in bytes; 0: none. */
  size_t instance_bytes;
  /* RONDEL_EMIT_... */
  int32_t emit;
  /* The encoding of all other topics. */
  int32_t encoding;
  /* Not 0: explain violations. */
  int32_t explain;
} rondel_options;

/* rondel_topic.name of a topic whose address has no parameters. */
#define RONDEL_NO_NAME UINT32_MAX

/* A topic of a monitor, from rondel_monitor_topic. */
typedef struct rondel_topic {
  uint32_t index;
  uint32_t name;
} rondel_topic;

/* A message of a batch. */
typedef struct rondel_message {
  int64_t time;
  const void *payload;
  size_t length;
  rondel_topic topic;
} rondel_message;

/* Opens a monitor of a specification without mistakes. Null options are the defaults. After an error, *out is null. */
rondel_status rondel_monitor_open(const rondel_specification *specification, const rondel_options *options,
                                  rondel_monitor **out);

/* Frees a monitor. Null is allowed. */
void rondel_monitor_free(rondel_monitor *monitor);

/* Finds a topic by its name or address in the specification; where the address has parameters, by a name that matches it.
 * A topic belongs to its monitor, for as long as this lives. */
rondel_status rondel_monitor_topic(const rondel_monitor *monitor, const char *name, size_t length, rondel_topic *out);

/* Evaluates a message with this payload, and all before it. */
rondel_status rondel_monitor_push(rondel_monitor *monitor, rondel_topic topic, int64_t time, const void *payload,
                                  size_t length);

/* Evaluates messages in order. Those that cannot be read are counted in *refused, which may be null, and the status is
 * RONDEL_ERROR_MESSAGE; the others are evaluated. After RONDEL_ERROR_ARGUMENT, none is. */
rondel_status rondel_monitor_push_batch(rondel_monitor *monitor, const rondel_message *messages, size_t count,
                                        size_t *refused);

/* The structures of the Arrow C data interface. */
struct ArrowSchema;
struct ArrowArray;

/* Evaluates the rows of an array of structures, each a message. `time` names the column with the times: 64-bit integers of
 * nanoseconds, float seconds, or timestamps. A column `pose.x` is the member `x` of `pose`; columns that the specification
 * does not read are skipped. The array is moved and released, also after an error; the schema stays the caller's. Rows that
 * cannot be read are counted as in rondel_monitor_push_batch. */
rondel_status rondel_monitor_push_columns(rondel_monitor *monitor, rondel_topic topic, const char *time,
                                          size_t time_length, struct ArrowArray *array,
                                          const struct ArrowSchema *schema, size_t *refused);

/* Lets time pass up to `time` without a message: deadlines are evaluated. */
rondel_status rondel_monitor_advance(rondel_monitor *monitor, int64_t time);

/* Ends the trace: what only later messages could decide is inconclusive. A second call does nothing. */
rondel_status rondel_monitor_finish(rondel_monitor *monitor);

/* Returns the time at which the next verdict may change without a message; RONDEL_END if none can. */
rondel_status rondel_monitor_deadline(rondel_monitor *monitor, int64_t *out);

/* ---- Reports ---- */

/* Verdicts. */
enum {
  RONDEL_SATISFIED = 0,
  RONDEL_VIOLATED = 1,
  /* It depends on messages that were missed, or that never came. */
  RONDEL_INCONCLUSIVE = 2
};

/* rondel_report.step of a verdict that time alone decided. */
#define RONDEL_NO_STEP UINT64_MAX

/* A verdict on a property. Reports wait until they are taken, so take them after each push. */
typedef struct rondel_report {
  /* The name of the property. */
  rondel_text property;
  /* The value of @severity; empty without it. */
  rondel_text severity;
  /* The parameters of `for each` as a JSON object; empty without any. */
  rondel_text key;
  /* The explanation of a violation as JSON; empty unless rondel_options.explain was set. */
  rondel_text explanation;
  /* The verdict as networks publish it, in JSON. */
  rondel_text json;
  /* The time at which it became certain, and the time that it is about. */
  int64_t time;
  int64_t about;
  /* The number of the message at which it became certain, from 0, or RONDEL_NO_STEP. */
  uint64_t step;
  /* With @robust; NaN if it is not known or not requested. */
  double robustness;
  /* The position of the property in the specification. */
  uint32_t property_index;
  /* RONDEL_SATISFIED, RONDEL_VIOLATED or RONDEL_INCONCLUSIVE. */
  int32_t verdict;
  /* 1 if it is about the open interval after `about`. */
  uint8_t is_after;
} rondel_report;

/* A notice about messages: late, undecodable, beyond a limit. At most 4,096 wait. */
typedef struct rondel_notice {
  /* The kind in one word, such as "undecodable". */
  rondel_text kind;
  /* The name of the topic; empty if it is about no single one. */
  rondel_text topic;
  /* The sentence for people. */
  rondel_text text;
  /* The notice as networks publish it, in JSON. */
  rondel_text json;
} rondel_notice;

/* Takes the next report or notice; RONDEL_END if there is none. */
rondel_status rondel_monitor_next_report(rondel_monitor *monitor, rondel_report *out);
rondel_status rondel_monitor_next_notice(rondel_monitor *monitor, rondel_notice *out);

/* Takes all reports as an array of structures, which the caller releases. Columns: property, severity, key, verdict,
 * explanation (texts; severity, key and explanation may be null), time_ns, about_ns (64-bit integers), is_after (bool),
 * step (unsigned 64-bit integer or null), robustness (double or null). What was at both places is overwritten. Without
 * reports, the status is RONDEL_END, and both are released. */
rondel_status rondel_monitor_take_reports(rondel_monitor *monitor, struct ArrowArray *array,
                                          struct ArrowSchema *schema);

/* Returns the counts of messages and the verdicts of each property as a JSON object: `checked`, `out_of_order`,
 * `is_violated`, `is_inconclusive`, `not_evaluated` (sentences), and `properties`, each with `name`, `verdict`,
 * `violations`, `first_violation` (seconds), `least_robustness`; null where there is none. */
rondel_status rondel_monitor_summary(rondel_monitor *monitor, rondel_text *out);

/* ---- Snapshots ---- */

/* Returns the state of a monitor that is not finished. Reports and notices that were not taken are not part of it. */
rondel_status rondel_monitor_snapshot(rondel_monitor *monitor, rondel_bytes *out);

/* Opens a monitor that continues from a snapshot of one with the same options. If the specification was edited since,
 * unchanged properties continue, and a notice lists the others. */
rondel_status rondel_monitor_restore(const rondel_specification *specification, const rondel_options *options,
                                     const uint8_t *snapshot, size_t length, rondel_monitor **out);

/* All hashes of keys are below it. */
#define RONDEL_KEY_HASHES (UINT64_C(1) << 32)

/* Returns a part of the state: the instances of `for each` whose parameters have a hash from `from` to below `until`, and
 * all other state, also the counts of the whole monitor. */
rondel_status rondel_monitor_snapshot_part(rondel_monitor *monitor, uint64_t from, uint64_t until, rondel_bytes *out);

/* Returns several parts in one pass over the instances: `count` of them, each of the hashes from one of the `count` + 1 values
 * of `cuts` to below the next. `out` has space for `count`, each freed by rondel_bytes_free. */
rondel_status rondel_monitor_snapshot_parts(rondel_monitor *monitor, const uint64_t *cuts, size_t count,
                                            rondel_bytes *out);

/* Opens a monitor that continues from parts whose ranges do not overlap: of one monitor at one time, or of several that have
 * advanced to the same time. For several, all properties need `for each` and all messages its parameters; verdicts that
 * depend on messages that one of them refused are inconclusive for all instances, and the counts of the summary are those of
 * one of them. An instance in none of the parts begins with its next message. */
rondel_status rondel_monitor_restore_parts(const rondel_specification *specification, const rondel_options *options,
                                           const rondel_bytes *parts, size_t count, rondel_monitor **out);

/* Returns the hash of the parameters of an instance, written as a JSON array in the order of `for each`, such as [7,"r7"].
 * Times and durations are nanoseconds; a number with a point or an exponent is a float. */
rondel_status rondel_key_hash(const char *parameters, size_t length, uint64_t *out);

#ifdef __cplusplus
}
#endif

#endif
