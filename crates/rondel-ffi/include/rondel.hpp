// Rondel in C++17: a header over rondel.h. Errors are exceptions; results are copied, so that they stay valid.
//
//   rondel::monitor monitor("topic tank { level: float }  property low = tank.level < 40");
//   auto tank = monitor.topic("tank");
//   for (const auto &report : monitor.update(tank, time, R"({"level": 41.5})"))
//     std::cout << report.property << " " << rondel::to_string(report.verdict) << "\n";
#ifndef RONDEL_HPP
#define RONDEL_HPP

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rondel.h"

namespace rondel {

/// An error of a call.
class error : public std::runtime_error {
 public:
  error(rondel_status status, const std::string &text) : std::runtime_error(text), status_(status) {}

  /// RONDEL_ERROR_...
  rondel_status status() const noexcept { return status_; }

 private:
  rondel_status status_;
};

namespace detail {

inline std::string string(rondel_text text) { return std::string(text.data, text.length); }

/// Throws the error of this thread unless the status is none. Returns whether there was something: false for RONDEL_END.
inline bool check(rondel_status status) {
  if (status < 0) throw error(status, rondel_last_error());
  return status != RONDEL_END;
}

struct free_specification {
  void operator()(rondel_specification *of) const noexcept { rondel_specification_free(of); }
};

struct free_monitor {
  void operator()(rondel_monitor *of) const noexcept { rondel_monitor_free(of); }
};

/// Copies bytes of the library, and frees them.
inline std::vector<std::uint8_t> copied(rondel_bytes bytes) {
  struct freed {
    rondel_bytes bytes;
    ~freed() { rondel_bytes_free(bytes); }
  } owner{bytes};
  if (bytes.data == nullptr) return {};
  return std::vector<std::uint8_t>(bytes.data, bytes.data + bytes.length);
}

}  // namespace detail

/// A diagnostic of a specification.
struct diagnostic {
  std::string code;
  std::string message;
  std::string help;
  /// Its place in the text: the first byte, and the byte after the last.
  std::size_t start = 0;
  std::size_t end = 0;
  /// Line and column of `start`, from 1.
  std::size_t line = 0;
  std::size_t column = 0;
  bool is_error = false;
};

/// A specification has mistakes. The text shows each with its place.
class specification_error : public error {
 public:
  specification_error(const std::string &text, std::vector<diagnostic> diagnostics)
      : error(RONDEL_ERROR_SPECIFICATION, text),
        diagnostics_(std::make_shared<const std::vector<diagnostic>>(std::move(diagnostics))) {}

  const std::vector<diagnostic> &diagnostics() const noexcept { return *diagnostics_; }

 private:
  // Copies of exceptions must not throw.
  std::shared_ptr<const std::vector<diagnostic>> diagnostics_;
};

/// A compiled specification. Several threads and monitors may use it.
class specification {
 public:
  /// Throws specification_error if the text has mistakes.
  explicit specification(std::string_view text) {
    rondel_specification *compiled = nullptr;
    const rondel_status status = rondel_specification_compile(text.data(), text.size(), &compiled);
    handle_.reset(compiled);
    if (status == RONDEL_ERROR_SPECIFICATION) {
      throw specification_error(detail::string(rondel_specification_rendered(compiled)), diagnostics());
    }
    detail::check(status);
  }

  /// The warnings.
  std::vector<diagnostic> diagnostics() const {
    std::vector<diagnostic> all;
    for (std::size_t i = 0; i < rondel_specification_diagnostics(get()); ++i) {
      rondel_diagnostic of;
      detail::check(rondel_specification_diagnostic(get(), i, &of));
      all.push_back({detail::string(of.code), detail::string(of.message), detail::string(of.help), of.start, of.end,
                     of.line, of.column, of.severity == RONDEL_ERROR});
    }
    return all;
  }

  std::vector<std::string> properties() const {
    return names(rondel_specification_properties(get()), rondel_specification_property);
  }

  std::vector<std::string> topics() const {
    return names(rondel_specification_topics(get()), rondel_specification_topic);
  }

  /// The handle, for functions of rondel.h. It stays that of this object.
  const rondel_specification *get() const noexcept { return handle_.get(); }

 private:
  template <typename Name>
  std::vector<std::string> names(std::size_t count, Name name) const {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < count; ++i) {
      rondel_text text;
      detail::check(name(get(), i, &text));
      all.push_back(detail::string(text));
    }
    return all;
  }

  std::unique_ptr<rondel_specification, detail::free_specification> handle_;
};

enum class verdict : std::int32_t {
  satisfied = RONDEL_SATISFIED,
  violated = RONDEL_VIOLATED,
  inconclusive = RONDEL_INCONCLUSIVE
};

inline const char *to_string(verdict of) noexcept {
  return of == verdict::satisfied ? "satisfied" : of == verdict::violated ? "violated" : "inconclusive";
}

/// A verdict on a property.
struct report {
  std::string property;
  /// The value of @severity; empty without it.
  std::string severity;
  /// The parameters of `for each` as a JSON object; empty without any.
  std::string key;
  /// The explanation of a violation as JSON; empty without one.
  std::string explanation;
  /// The verdict as networks publish it, in JSON.
  std::string json;
  /// The time in nanoseconds at which it became certain, and the time that it is about.
  std::int64_t time = 0;
  std::int64_t about = 0;
  /// The number of the message at which it became certain; none if time alone decided it.
  std::optional<std::uint64_t> step;
  /// With @robust, where it is known.
  std::optional<double> robustness;
  /// The position of the property in the specification.
  std::uint32_t property_index = 0;
  rondel::verdict verdict = rondel::verdict::inconclusive;
  /// Whether it is about the open interval after `about`.
  bool is_after = false;
};

/// A notice about messages: late, undecodable, beyond a limit.
struct notice {
  std::string kind;
  std::string topic;
  std::string text;
  std::string json;
};

/// The encoding of a topic: see rondel_input.
struct input {
  std::string topic;
  std::int32_t encoding = RONDEL_JSON;
  std::string type_name;
  std::string definition;
};

/// Options of a monitor: see rondel_options.
struct options {
  std::int32_t emit = RONDEL_EMIT_CHANGE;
  std::int32_t encoding = RONDEL_JSON;
  bool explain = false;
  std::size_t instance_bytes = 0;
  std::vector<input> inputs;
};

/// Checks messages against a specification. Each call that lets messages or time pass returns the verdicts that these
/// decide. Calls of several threads take turns; take reports in one.
class monitor {
 public:
  /// Throws specification_error if the text has mistakes.
  explicit monitor(std::string_view text, const options &settings = {}) : monitor(specification(text), settings) {}

  explicit monitor(const specification &of, const options &settings = {}) {
    with(settings, [&](const rondel_options &plain, rondel_monitor **out) {
      return rondel_monitor_open(of.get(), &plain, out);
    });
  }

  /// Continues from a snapshot of a monitor with the same options.
  static monitor restore(const specification &of, const std::vector<std::uint8_t> &snapshot,
                         const options &settings = {}) {
    monitor restored;
    restored.with(settings, [&](const rondel_options &plain, rondel_monitor **out) {
      return rondel_monitor_restore(of.get(), &plain, snapshot.data(), snapshot.size(), out);
    });
    return restored;
  }

  /// Continues from parts of one monitor at one time.
  static monitor restore_parts(const specification &of, const std::vector<std::vector<std::uint8_t>> &parts,
                               const options &settings = {}) {
    std::vector<rondel_bytes> all;
    // They are only read.
    for (const auto &part : parts) all.push_back({const_cast<std::uint8_t *>(part.data()), part.size()});
    monitor restored;
    restored.with(settings, [&](const rondel_options &plain, rondel_monitor **out) {
      return rondel_monitor_restore_parts(of.get(), &plain, all.data(), all.size(), out);
    });
    return restored;
  }

  /// Finds a topic by its name, address, or a name that matches an address with parameters.
  rondel_topic topic(std::string_view name) const {
    rondel_topic found;
    detail::check(rondel_monitor_topic(get(), name.data(), name.size(), &found));
    return found;
  }

  /// Evaluates a message. Throws error with RONDEL_ERROR_MESSAGE if it cannot be read; verdicts that this decides are
  /// returned by the next call.
  std::vector<report> update(rondel_topic topic, std::int64_t time, std::string_view payload) {
    detail::check(rondel_monitor_push(get(), topic, time, payload.data(), payload.size()));
    return reports();
  }

  std::vector<report> update(std::string_view topic, std::int64_t time, std::string_view payload) {
    return update(this->topic(topic), time, payload);
  }

  /// Evaluates messages in order. Those that cannot be read are counted in `refused`; without it, they are an error.
  std::vector<report> update(const std::vector<rondel_message> &messages, std::size_t *refused = nullptr) {
    check_batch(rondel_monitor_push_batch(get(), messages.data(), messages.size(), refused), refused);
    return reports();
  }

  /// Evaluates rows of columns: see rondel_monitor_push_columns.
  std::vector<report> update(rondel_topic topic, std::string_view time_column, ArrowArray *array,
                             const ArrowSchema *schema, std::size_t *refused = nullptr) {
    check_batch(rondel_monitor_push_columns(get(), topic, time_column.data(), time_column.size(), array, schema, refused),
                refused);
    return reports();
  }

  /// Lets time pass without a message.
  std::vector<report> advance(std::int64_t time) {
    detail::check(rondel_monitor_advance(get(), time));
    return reports();
  }

  /// Ends the trace.
  std::vector<report> finish() {
    detail::check(rondel_monitor_finish(get()));
    return reports();
  }

  /// The time at which the next verdict may change without a message; none if none can.
  std::optional<std::int64_t> deadline() const {
    std::int64_t time = 0;
    if (!detail::check(rondel_monitor_deadline(get(), &time))) return std::nullopt;
    return time;
  }

  /// Takes the verdicts that wait: after an error, or after calls of rondel.h with `get()`.
  std::vector<report> reports() {
    std::vector<report> all;
    rondel_report of;
    while (detail::check(rondel_monitor_next_report(get(), &of))) {
      report copy;
      copy.property = detail::string(of.property);
      copy.severity = detail::string(of.severity);
      copy.key = detail::string(of.key);
      copy.explanation = detail::string(of.explanation);
      copy.json = detail::string(of.json);
      copy.time = of.time;
      copy.about = of.about;
      if (of.step != RONDEL_NO_STEP) copy.step = of.step;
      if (!std::isnan(of.robustness)) copy.robustness = of.robustness;
      copy.property_index = of.property_index;
      copy.verdict = static_cast<rondel::verdict>(of.verdict);
      copy.is_after = of.is_after != 0;
      all.push_back(std::move(copy));
    }
    return all;
  }

  /// Takes the notices since the last call.
  std::vector<notice> notices() {
    std::vector<notice> all;
    rondel_notice of;
    while (detail::check(rondel_monitor_next_notice(get(), &of))) {
      all.push_back({detail::string(of.kind), detail::string(of.topic), detail::string(of.text), detail::string(of.json)});
    }
    return all;
  }

  /// Counts of messages and the verdicts of each property, as JSON: see rondel_monitor_summary.
  std::string summary() const {
    rondel_text text;
    detail::check(rondel_monitor_summary(get(), &text));
    return detail::string(text);
  }

  /// The whole state. Take it before `finish`.
  std::vector<std::uint8_t> snapshot() const {
    rondel_bytes bytes{};
    detail::check(rondel_monitor_snapshot(get(), &bytes));
    return detail::copied(bytes);
  }

  /// The instances of `for each` whose parameters have a hash in this range, and all other state.
  std::vector<std::uint8_t> snapshot_part(std::uint64_t from, std::uint64_t until) const {
    rondel_bytes bytes{};
    detail::check(rondel_monitor_snapshot_part(get(), from, until, &bytes));
    return detail::copied(bytes);
  }

  /// The handle, for functions of rondel.h. It stays that of this object.
  rondel_monitor *get() const noexcept { return handle_.get(); }

 private:
  monitor() = default;

  static void check_batch(rondel_status status, const std::size_t *refused) {
    if (status != RONDEL_ERROR_MESSAGE || refused == nullptr) detail::check(status);
  }

  /// Opens the monitor by a function that takes plain options.
  template <typename Open>
  void with(const options &settings, Open open) {
    std::vector<rondel_input> inputs;
    for (const auto &own : settings.inputs) {
      inputs.push_back({{own.topic.data(), own.topic.size()}, {own.type_name.data(), own.type_name.size()},
                        own.definition.data(), own.definition.size(), own.encoding});
    }
    rondel_options plain{};
    plain.inputs = inputs.data();
    plain.input_count = inputs.size();
    plain.instance_bytes = settings.instance_bytes;
    plain.emit = settings.emit;
    plain.encoding = settings.encoding;
    plain.explain = settings.explain ? 1 : 0;
    rondel_monitor *opened = nullptr;
    detail::check(open(plain, &opened));
    handle_.reset(opened);
  }

  std::unique_ptr<rondel_monitor, detail::free_monitor> handle_;
};

/// The hash of the parameters of an instance, as a JSON array: see rondel_key_hash.
inline std::uint64_t key_hash(std::string_view parameters) {
  std::uint64_t hash = 0;
  detail::check(rondel_key_hash(parameters.data(), parameters.size(), &hash));
  return hash;
}

}  // namespace rondel

#endif
