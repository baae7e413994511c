/* Calls every function that allocates, frees, or takes memory of the caller, for the sanitizers of the compiler. Payloads
 * and texts are copies of exactly their length, which are freed after the call: the library must neither read beyond them nor
 * keep them. Prints the number of reports. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rondel.h"

#define EXPECT(call, status) expect((call), (status), #call)

static void expect(rondel_status found, rondel_status wanted, const char *call) {
  if (found == wanted) return;
  fprintf(stderr, "%s: %d, not %d: %s\n", call, (int)found, (int)wanted, rondel_last_error());
  exit(1);
}

struct ArrowSchema {
  const char *format, *name, *metadata;
  int64_t flags, n_children;
  struct ArrowSchema **children, *dictionary;
  void (*release)(struct ArrowSchema *);
  void *private_data;
};

struct ArrowArray {
  int64_t length, null_count, offset, n_buffers, n_children;
  const void **buffers;
  struct ArrowArray **children, *dictionary;
  void (*release)(struct ArrowArray *);
  void *private_data;
};

static const int64_t SECOND = 1000000000;
static const char TEXT[] = "topic tank { id: string, level: float } "
                           "property low for each i in tank.id = tank.level > 40 -> eventually[0, 2 s] tank.level < 40";

/* Returns a copy of exactly this length. */
static char *copy(const char *text) {
  size_t length = strlen(text);
  char *bytes = malloc(length + (length == 0));
  return memcpy(bytes, text, length);
}

static rondel_specification *compiled(const char *text, rondel_status status) {
  rondel_specification *specification = NULL;
  char *bytes = copy(text);
  EXPECT(rondel_specification_compile(bytes, strlen(text), &specification), status);
  free(bytes);
  return specification;
}

static void push(rondel_monitor *monitor, int64_t time, const char *payload, rondel_status status) {
  rondel_topic tank;
  EXPECT(rondel_monitor_topic(monitor, "tank", RONDEL_NUL_TERMINATED, &tank), RONDEL_OK);
  char *bytes = copy(payload);
  EXPECT(rondel_monitor_push(monitor, tank, time, bytes, strlen(payload)), status);
  free(bytes);
}

/* Reads all texts of all reports and notices. */
static int reports(rondel_monitor *monitor) {
  int count = 0;
  size_t bytes = 0;
  rondel_report report;
  while (rondel_monitor_next_report(monitor, &report) == RONDEL_OK) {
    bytes += strlen(report.json.data) + strlen(report.key.data) + strlen(report.explanation.data);
    bytes += strlen(report.property.data) + strlen(report.severity.data);
    count++;
  }
  rondel_notice notice;
  while (rondel_monitor_next_notice(monitor, &notice) == RONDEL_OK) {
    bytes += strlen(notice.json.data) + strlen(notice.text.data) + strlen(notice.topic.data) + strlen(notice.kind.data);
  }
  return bytes > 0 || count == 0 ? count : -1;
}

static void release_array(struct ArrowArray *array) {
  for (int64_t i = 0; i < array->n_children; i++) {
    if (array->children[i]->release != NULL) array->children[i]->release(array->children[i]);
    free(array->children[i]);
  }
  for (int64_t i = 0; i < array->n_buffers; i++) free((void *)array->buffers[i]);
  free(array->children);
  free((void *)array->buffers);
  array->release = NULL;
}

static void release_schema(struct ArrowSchema *schema) { schema->release = NULL; }

static void *bytes_of(const void *values, size_t length) { return memcpy(malloc(length), values, length); }

/* Returns an array of two rows with these buffers after that of validity. */
static struct ArrowArray column(const void *first, size_t first_length, const void *second, size_t second_length) {
  struct ArrowArray array = {2, 0, 0, second == NULL ? 2 : 3, 0, NULL, NULL, NULL, release_array, NULL};
  array.buffers = calloc(3, sizeof *array.buffers);
  array.buffers[1] = bytes_of(first, first_length);
  if (second != NULL) array.buffers[2] = bytes_of(second, second_length);
  return array;
}

/* Pushes two rows as columns, which the library releases. */
static void push_columns(rondel_monitor *monitor, const char *time, rondel_status status) {
  const int64_t times[] = {10 * SECOND, 11 * SECOND};
  const int32_t ends[] = {0, 1, 2};
  const double levels[] = {50, 30};
  struct ArrowArray fields[3] = {column(times, sizeof times, NULL, 0), column(ends, sizeof ends, "ab", 2),
                                 column(levels, sizeof levels, NULL, 0)};
  const char *const formats[] = {"l", "u", "g"}, *const names[] = {"t", "id", "level"};
  struct ArrowArray row = {2, 0, 0, 1, 3, calloc(1, sizeof(void *)), calloc(3, sizeof(void *)), NULL, release_array, NULL};
  struct ArrowSchema schemas[3], *children[3];
  struct ArrowSchema of_row = {"+s", "", NULL, 0, 3, children, NULL, release_schema, NULL};
  for (int i = 0; i < 3; i++) {
    row.children[i] = bytes_of(&fields[i], sizeof fields[i]);
    schemas[i] = (struct ArrowSchema){formats[i], names[i], NULL, 0, 0, NULL, NULL, release_schema, NULL};
    children[i] = &schemas[i];
  }
  rondel_topic tank;
  EXPECT(rondel_monitor_topic(monitor, "tank", RONDEL_NUL_TERMINATED, &tank), RONDEL_OK);
  EXPECT(rondel_monitor_push_columns(monitor, tank, time, strlen(time), &row, &of_row, NULL), status);
  if (row.release != NULL) {
    fputs("the array was not released\n", stderr);
    exit(1);
  }
}

/* Continues from a whole snapshot and from parts, which are freed before the monitors are used. */
static int continued(const rondel_specification *specification, const rondel_options *options, rondel_monitor *monitor) {
  const uint64_t cuts[] = {0, RONDEL_KEY_HASHES / 2, RONDEL_KEY_HASHES};
  rondel_bytes whole, parts[2];
  rondel_monitor *again = NULL, *joined = NULL;
  EXPECT(rondel_monitor_snapshot(monitor, &whole), RONDEL_OK);
  EXPECT(rondel_monitor_restore(specification, options, whole.data, whole.length, &again), RONDEL_OK);
  EXPECT(rondel_monitor_restore(specification, options, whole.data, whole.length / 2, &joined), RONDEL_ERROR_SNAPSHOT);
  rondel_bytes_free(whole);
  EXPECT(rondel_monitor_snapshot_parts(again, cuts, 2, parts), RONDEL_OK);
  EXPECT(rondel_monitor_restore_parts(specification, options, parts, 2, &joined), RONDEL_OK);
  rondel_bytes_free(parts[0]);
  rondel_bytes_free(parts[1]);
  rondel_monitor_free(again);
  EXPECT(rondel_monitor_advance(joined, 20 * SECOND), RONDEL_OK);
  int count = reports(joined);
  rondel_monitor_free(joined);
  return count;
}

int main(void) {
  const char *const mistake = "topic tank { level: float } property low = tank.lvel < 40";
  rondel_specification *wrong = compiled(mistake, RONDEL_ERROR_SPECIFICATION);
  rondel_diagnostic diagnostic;
  EXPECT(rondel_specification_diagnostic(wrong, 0, &diagnostic), RONDEL_OK);
  size_t length = strlen(diagnostic.message.data) + strlen(rondel_specification_rendered(wrong).data);
  rondel_specification_free(wrong);

  rondel_specification *specification = compiled(TEXT, RONDEL_OK);
  rondel_options options = {0};
  options.explain = 1;
  rondel_monitor *monitor = NULL;
  EXPECT(rondel_monitor_open(specification, &options, &monitor), RONDEL_OK);
  push(monitor, 1 * SECOND, "{\"id\":\"a\",\"level\":50}", RONDEL_OK);
  push(monitor, 2 * SECOND, "{\"id\":\"a\",\"lev", RONDEL_ERROR_MESSAGE);
  push(monitor, 3 * SECOND, "", RONDEL_ERROR_MESSAGE);
  push(monitor, 9 * SECOND, "{\"id\":\"a longer name than fits\",\"level\":50}", RONDEL_OK);
  int count = reports(monitor);
  push_columns(monitor, "none", RONDEL_ERROR_COLUMNS);
  push_columns(monitor, "t", RONDEL_OK);
  count += reports(monitor) + continued(specification, &options, monitor);
  rondel_specification_free(specification);

  struct ArrowArray array;
  struct ArrowSchema schema;
  EXPECT(rondel_monitor_finish(monitor), RONDEL_OK);
  EXPECT(rondel_monitor_take_reports(monitor, &array, &schema), RONDEL_OK);
  count += (int)array.length;
  array.release(&array);
  schema.release(&schema);
  rondel_text summary;
  EXPECT(rondel_monitor_summary(monitor, &summary), RONDEL_OK);
  length += strlen(summary.data);
  rondel_monitor_free(monitor);
  rondel_monitor_free(NULL);
  rondel_specification_free(NULL);
  printf("%d reports\n", length > 0 ? count : 0);
  return 0;
}
