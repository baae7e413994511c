#include "columns.h"

#include <stdlib.h>
#include <string.h>

struct ArrowSchema {
  const char *format;
  const char *name;
  const char *metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema **children;
  struct ArrowSchema *dictionary;
  void (*release)(struct ArrowSchema *);
  void *private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void **buffers;
  struct ArrowArray **children;
  struct ArrowArray *dictionary;
  void (*release)(struct ArrowArray *);
  void *private_data;
};

#define NULLABLE 2
#define BUFFERS 3
/* The least length of a written column: three texts, of which two are not empty. */
#define LEAST_LENGTH 5

/* A column with the array that has no rows. */
typedef struct {
  struct ArrowSchema schema;
  struct ArrowArray array;
  const void *buffers[BUFFERS];
} column;

/* Columns that share their memory, which is freed at once. */
typedef struct {
  column *columns;
  struct ArrowSchema **schemas;
  struct ArrowArray **arrays;
  size_t count;
  size_t capacity;
  const char *at;
  const char *end;
} arena;

/* Offsets and values of no rows. */
static const int64_t EMPTY[8] = {0};

static void release_schema(struct ArrowSchema *schema) { schema->release = NULL; }

static void release_array(struct ArrowArray *array) { array->release = NULL; }

/* Returns the next text, or null at the end. */
static const char *next(arena *from) {
  const char *text = from->at;
  const char *nul = memchr(text, 0, (size_t)(from->end - text));
  if (nul == NULL) {
    return NULL;
  }
  from->at = nul + 1;
  return text;
}

static int64_t buffer_count(const char *format) {
  switch (format[0]) {
  case '+':
    return format[1] == 's' ? 1 : 2;
  case 'u':
  case 'z':
    return 3;
  default:
    return 2;
  }
}

/* Reads a column with its children, which are neighbours. Returns 0 for columns that are written wrongly. */
static int read_column(arena *from, column *into) {
  const char *format = next(from);
  const char *name = format == NULL ? NULL : next(from);
  const char *number = name == NULL ? NULL : next(from);
  size_t count = number == NULL ? 0 : (size_t)strtoul(number, NULL, 10);
  if (number == NULL || count > from->capacity - from->count) {
    return 0;
  }
  size_t first = from->count;
  from->count += count;
  into->schema = (struct ArrowSchema){.format = format, .name = name, .flags = NULLABLE, .release = release_schema};
  into->array = (struct ArrowArray){.release = release_array, .buffers = into->buffers};
  into->schema.n_children = into->array.n_children = (int64_t)count;
  into->schema.children = from->schemas + first;
  into->array.children = from->arrays + first;
  into->array.n_buffers = buffer_count(format);
  for (size_t i = 1; i < BUFFERS; i++) {
    into->buffers[i] = EMPTY;
  }
  for (size_t i = 0; i < count; i++) {
    column *child = from->columns + first + i;
    from->schemas[first + i] = &child->schema;
    from->arrays[first + i] = &child->array;
    if (!read_column(from, child)) {
      return 0;
    }
  }
  return 1;
}

rondel_status check_columns(rondel_monitor *monitor, rondel_topic topic, const char *time, size_t time_length,
                            const char *columns, size_t length) {
  size_t most = length / LEAST_LENGTH + 1;
  arena all = {NULL, NULL, NULL, 1, most, columns, columns + length};
  all.columns = calloc(most, sizeof *all.columns);
  all.schemas = calloc(most, sizeof *all.schemas);
  all.arrays = calloc(most, sizeof *all.arrays);
  rondel_status status = RONDEL_ERROR_ARGUMENT;
  if (all.columns != NULL && all.schemas != NULL && all.arrays != NULL && read_column(&all, all.columns)) {
    column *row = all.columns;
    status = rondel_monitor_push_columns(monitor, topic, time, time_length, &row->array, &row->schema, NULL);
  }
  free(all.columns);
  free(all.schemas);
  free(all.arrays);
  return status;
}
