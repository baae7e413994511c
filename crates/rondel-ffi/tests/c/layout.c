/* Prints the constants of rondel.h, and the layout of its structures. */
#include <inttypes.h>
#include <stdio.h>

#include "rondel.h"

#define CONSTANT(name) printf(#name " %" PRId64 "\n", (int64_t)(name))
#define SIZE(type) printf(#type " %zu\n", sizeof(type))
#define MEMBER(type, member) printf(#type "." #member " %zu\n", offsetof(type, member))

int main(void) {
  CONSTANT(RONDEL_ABI_VERSION);
  CONSTANT(RONDEL_OK);
  CONSTANT(RONDEL_END);
  CONSTANT(RONDEL_ERROR_ARGUMENT);
  CONSTANT(RONDEL_ERROR_SPECIFICATION);
  CONSTANT(RONDEL_ERROR_MESSAGE);
  CONSTANT(RONDEL_ERROR_COLUMNS);
  CONSTANT(RONDEL_ERROR_SNAPSHOT);
  CONSTANT(RONDEL_ERROR_FINISHED);
  CONSTANT(RONDEL_ERROR_PANIC);
  CONSTANT(RONDEL_NUL_TERMINATED);
  CONSTANT(RONDEL_ERROR);
  CONSTANT(RONDEL_WARNING);
  CONSTANT(RONDEL_EMIT_CHANGE);
  CONSTANT(RONDEL_EMIT_EVERY);
  CONSTANT(RONDEL_EMIT_VIOLATIONS);
  CONSTANT(RONDEL_JSON);
  CONSTANT(RONDEL_CDR);
  CONSTANT(RONDEL_PROTOBUF);
  CONSTANT(RONDEL_FLATBUFFERS);
  CONSTANT(RONDEL_CBOR);
  CONSTANT(RONDEL_MSGPACK);
  CONSTANT(RONDEL_PLAIN);
  CONSTANT(RONDEL_SPARKPLUG_B);
  CONSTANT(RONDEL_SENML);
  CONSTANT(RONDEL_XML);
  CONSTANT(RONDEL_NO_NAME);
  CONSTANT(RONDEL_SATISFIED);
  CONSTANT(RONDEL_VIOLATED);
  CONSTANT(RONDEL_INCONCLUSIVE);
  CONSTANT(RONDEL_NO_STEP);
  CONSTANT(RONDEL_KEY_HASHES);
  SIZE(rondel_text);
  MEMBER(rondel_text, data);
  MEMBER(rondel_text, length);
  SIZE(rondel_bytes);
  MEMBER(rondel_bytes, data);
  MEMBER(rondel_bytes, length);
  SIZE(rondel_diagnostic);
  MEMBER(rondel_diagnostic, code);
  MEMBER(rondel_diagnostic, message);
  MEMBER(rondel_diagnostic, help);
  MEMBER(rondel_diagnostic, start);
  MEMBER(rondel_diagnostic, end);
  MEMBER(rondel_diagnostic, line);
  MEMBER(rondel_diagnostic, column);
  MEMBER(rondel_diagnostic, severity);
  SIZE(rondel_input);
  MEMBER(rondel_input, topic);
  MEMBER(rondel_input, type_name);
  MEMBER(rondel_input, definition);
  MEMBER(rondel_input, definition_length);
  MEMBER(rondel_input, encoding);
  SIZE(rondel_options);
  MEMBER(rondel_options, inputs);
  MEMBER(rondel_options, input_count);
  MEMBER(rondel_options, instance_bytes);
  MEMBER(rondel_options, emit);
  MEMBER(rondel_options, encoding);
  MEMBER(rondel_options, explain);
  SIZE(rondel_topic);
  MEMBER(rondel_topic, index);
  MEMBER(rondel_topic, name);
  SIZE(rondel_message);
  MEMBER(rondel_message, time);
  MEMBER(rondel_message, payload);
  MEMBER(rondel_message, length);
  MEMBER(rondel_message, topic);
  SIZE(rondel_report);
  MEMBER(rondel_report, property);
  MEMBER(rondel_report, severity);
  MEMBER(rondel_report, key);
  MEMBER(rondel_report, explanation);
  MEMBER(rondel_report, json);
  MEMBER(rondel_report, time);
  MEMBER(rondel_report, about);
  MEMBER(rondel_report, step);
  MEMBER(rondel_report, robustness);
  MEMBER(rondel_report, property_index);
  MEMBER(rondel_report, verdict);
  MEMBER(rondel_report, is_after);
  SIZE(rondel_notice);
  MEMBER(rondel_notice, kind);
  MEMBER(rondel_notice, topic);
  MEMBER(rondel_notice, text);
  MEMBER(rondel_notice, json);
  return 0;
}
