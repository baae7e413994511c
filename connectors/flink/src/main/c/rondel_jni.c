/* Native methods of io.rondel.flink.Native: the functions of rondel.h for Java.
 *
 * Handles are longs. Texts are bytes in UTF-8, since JNI has a UTF-8 of its own. Functions return a status of rondel.h, and
 * results in the first element of `out`. Null is returned for bytes if the memory of the machine or of Java is exhausted; an
 * exception is then pending in Java, or the caller says so. */
#include <jni.h>
#include <stdlib.h>
#include <string.h>

#include "columns.h"
#include "rondel.h"

#define NATIVE(type, name) JNIEXPORT type JNICALL Java_io_rondel_flink_Native_##name

/* A message of a batch as Java writes it, in the order of bytes of the machine. */
typedef struct {
  int64_t time;
  uint32_t index;
  uint32_t name;
  uint32_t offset;
  uint32_t length;
} record;

/* Bytes that grow. */
typedef struct {
  uint8_t *data;
  size_t length;
  size_t capacity;
  int failed;
} buffer;

static void append(buffer *to, const void *bytes, size_t length) {
  if (to->failed || length == 0) {
    return;
  }
  if (to->capacity - to->length < length) {
    size_t capacity = to->capacity + length + to->capacity / 2 + 1024;
    uint8_t *data = realloc(to->data, capacity);
    if (data == NULL) {
      to->failed = 1;
      return;
    }
    to->data = data;
    to->capacity = capacity;
  }
  memcpy(to->data + to->length, bytes, length);
  to->length += length;
}

static void append_text(buffer *to, rondel_text text) {
  uint32_t length = (uint32_t)text.length;
  append(to, &length, sizeof length);
  append(to, text.data, text.length);
}

static jbyteArray array_of(JNIEnv *env, const void *bytes, size_t length) {
  if (length > INT32_MAX) {
    return NULL;
  }
  jbyteArray array = (*env)->NewByteArray(env, (jsize)length);
  if (array != NULL && length > 0) {
    (*env)->SetByteArrayRegion(env, array, 0, (jsize)length, bytes);
  }
  return array;
}

static jbyteArray array_of_text(JNIEnv *env, rondel_text text) { return array_of(env, text.data, text.length); }

/* Moves bytes into Java. */
static jbyteArray take(JNIEnv *env, buffer *from) {
  jbyteArray array = from->failed ? NULL : array_of(env, from->data, from->length);
  free(from->data);
  return array;
}

static void set(JNIEnv *env, jlongArray out, jlong value) { (*env)->SetLongArrayRegion(env, out, 0, 1, &value); }

/* Bytes of Java while a call lasts; a null array has none. */
typedef struct {
  jbyteArray array;
  jbyte *data;
  size_t length;
} borrowed;

static borrowed borrow(JNIEnv *env, jbyteArray array) {
  borrowed bytes = {array, NULL, 0};
  if (array != NULL) {
    bytes.data = (*env)->GetByteArrayElements(env, array, NULL);
    bytes.length = bytes.data == NULL ? 0 : (size_t)(*env)->GetArrayLength(env, array);
  }
  return bytes;
}

static void give_back(JNIEnv *env, borrowed bytes) {
  if (bytes.data != NULL) {
    (*env)->ReleaseByteArrayElements(env, bytes.array, bytes.data, JNI_ABORT);
  }
}

/* An array of arrays of bytes while a call lasts. */
typedef struct {
  borrowed *all;
  size_t count;
} borrowed_list;

static borrowed_list borrow_all(JNIEnv *env, jobjectArray arrays) {
  borrowed_list list = {NULL, arrays == NULL ? 0 : (size_t)(*env)->GetArrayLength(env, arrays)};
  list.all = calloc(list.count + 1, sizeof *list.all);
  if (list.all == NULL) {
    list.count = 0;
  }
  for (size_t i = 0; i < list.count; i++) {
    list.all[i] = borrow(env, (*env)->GetObjectArrayElement(env, arrays, (jsize)i));
  }
  return list;
}

static void give_all_back(JNIEnv *env, borrowed_list list) {
  for (size_t i = 0; i < list.count; i++) {
    give_back(env, list.all[i]);
    (*env)->DeleteLocalRef(env, list.all[i].array);
  }
  free(list.all);
}

/* The options of a monitor, and what they borrow. */
typedef struct {
  rondel_options options;
  rondel_input *inputs;
  borrowed_list texts;
} arguments;

/* Reads options: numbers are emit, encoding, explain, the limit of instances, and an encoding for each input; texts are topic,
 * type and definition of each input. */
static arguments read_options(JNIEnv *env, jlongArray numbers, jobjectArray texts) {
  arguments read = {{0}, NULL, borrow_all(env, texts)};
  jlong *values = (*env)->GetLongArrayElements(env, numbers, NULL);
  size_t count = read.texts.count / 3;
  read.inputs = calloc(count + 1, sizeof *read.inputs);
  if (values == NULL || read.inputs == NULL) {
    return read;
  }
  read.options.emit = (int32_t)values[0];
  read.options.encoding = (int32_t)values[1];
  read.options.explain = (int32_t)values[2];
  read.options.instance_bytes = (size_t)values[3];
  for (size_t i = 0; i < count; i++) {
    borrowed *own = read.texts.all + 3 * i;
    read.inputs[i].topic = (rondel_text){(const char *)own[0].data, own[0].length};
    read.inputs[i].type_name = (rondel_text){(const char *)own[1].data, own[1].length};
    read.inputs[i].definition = own[2].data;
    read.inputs[i].definition_length = own[2].length;
    read.inputs[i].encoding = (int32_t)values[4 + i];
  }
  (*env)->ReleaseLongArrayElements(env, numbers, values, JNI_ABORT);
  read.options.inputs = count == 0 ? NULL : read.inputs;
  read.options.input_count = count;
  return read;
}

static void free_options(JNIEnv *env, arguments read) {
  free(read.inputs);
  give_all_back(env, read.texts);
}

#define SPECIFICATION(handle) ((rondel_specification *)(intptr_t)(handle))
#define MONITOR(handle) ((rondel_monitor *)(intptr_t)(handle))

NATIVE(jint, abiVersion)(JNIEnv *env, jclass own) {
  (void)env, (void)own;
  return (jint)rondel_abi_version();
}

NATIVE(jbyteArray, lastError)(JNIEnv *env, jclass own) {
  (void)own;
  const char *text = rondel_last_error();
  return array_of(env, text, strlen(text));
}

NATIVE(jint, keyHash)(JNIEnv *env, jclass own, jbyteArray parameters, jlongArray out) {
  (void)own;
  borrowed text = borrow(env, parameters);
  uint64_t hash = 0;
  rondel_status status = rondel_key_hash((const char *)text.data, text.length, &hash);
  give_back(env, text);
  set(env, out, (jlong)hash);
  return status;
}

NATIVE(jint, specificationCompile)(JNIEnv *env, jclass own, jbyteArray source, jlongArray out) {
  (void)own;
  borrowed text = borrow(env, source);
  rondel_specification *specification = NULL;
  rondel_status status = rondel_specification_compile((const char *)text.data, text.length, &specification);
  give_back(env, text);
  set(env, out, (jlong)(intptr_t)specification);
  return status;
}

NATIVE(jbyteArray, specificationRendered)(JNIEnv *env, jclass own, jlong specification) {
  (void)own;
  return array_of_text(env, rondel_specification_rendered(SPECIFICATION(specification)));
}

/* Returns the names of all topics, each after its length. */
NATIVE(jbyteArray, specificationTopics)(JNIEnv *env, jclass own, jlong specification) {
  (void)own;
  buffer all = {NULL, 0, 0, 0};
  size_t count = rondel_specification_topics(SPECIFICATION(specification));
  for (size_t i = 0; i < count; i++) {
    rondel_text name = {NULL, 0};
    rondel_specification_topic(SPECIFICATION(specification), i, &name);
    append_text(&all, name);
  }
  return take(env, &all);
}

NATIVE(void, specificationFree)(JNIEnv *env, jclass own, jlong specification) {
  (void)env, (void)own;
  rondel_specification_free(SPECIFICATION(specification));
}

/* Opens a monitor: from the beginning if `saved` is null, else from one whole snapshot or from parts. */
NATIVE(jint, monitorOpen)(JNIEnv *env, jclass own, jlong specification, jlongArray numbers, jobjectArray texts,
                          jobjectArray saved, jboolean is_whole, jlongArray out) {
  (void)own;
  arguments read = read_options(env, numbers, texts);
  borrowed_list list = borrow_all(env, saved);
  rondel_bytes *bytes = calloc(list.count + 1, sizeof *bytes);
  rondel_specification *of = SPECIFICATION(specification);
  rondel_monitor *monitor = NULL;
  rondel_status status = RONDEL_ERROR_ARGUMENT;
  for (size_t i = 0; i < list.count && bytes != NULL; i++) {
    bytes[i] = (rondel_bytes){(uint8_t *)list.all[i].data, list.all[i].length};
  }
  if (saved == NULL) {
    status = rondel_monitor_open(of, &read.options, &monitor);
  } else if (bytes != NULL && is_whole) {
    status = rondel_monitor_restore(of, &read.options, bytes[0].data, bytes[0].length, &monitor);
  } else if (bytes != NULL) {
    status = rondel_monitor_restore_parts(of, &read.options, bytes, list.count, &monitor);
  }
  free(bytes);
  give_all_back(env, list);
  free_options(env, read);
  set(env, out, (jlong)(intptr_t)monitor);
  return status;
}

NATIVE(void, monitorFree)(JNIEnv *env, jclass own, jlong monitor) {
  (void)env, (void)own;
  rondel_monitor_free(MONITOR(monitor));
}

/* The result is the index of the topic, and the number of its name in the upper half. */
NATIVE(jint, monitorTopic)(JNIEnv *env, jclass own, jlong monitor, jbyteArray name, jlongArray out) {
  (void)own;
  borrowed text = borrow(env, name);
  rondel_topic topic = {0, 0};
  rondel_status status = rondel_monitor_topic(MONITOR(monitor), (const char *)text.data, text.length, &topic);
  give_back(env, text);
  set(env, out, (jlong)((uint64_t)topic.name << 32 | topic.index));
  return status;
}

/* Pushes `count` messages. Their records are at the beginning of `direct`, a direct buffer; offsets of payloads count from
 * its beginning, too. Java checks the lengths. The result is the number of refused messages. */
NATIVE(jint, monitorPush)(JNIEnv *env, jclass own, jlong monitor, jobject direct, jint count, jlongArray out) {
  (void)own;
  const uint8_t *base = (*env)->GetDirectBufferAddress(env, direct);
  rondel_message *messages = malloc(((size_t)count + 1) * sizeof *messages);
  size_t refused = 0;
  rondel_status status = RONDEL_ERROR_ARGUMENT;
  if (base != NULL && messages != NULL) {
    const record *records = (const record *)base;
    for (jint i = 0; i < count; i++) {
      const record *of = records + i;
      messages[i] = (rondel_message){of->time, base + of->offset, of->length, {of->index, of->name}};
    }
    status = rondel_monitor_push_batch(MONITOR(monitor), messages, (size_t)count, &refused);
  }
  free(messages);
  set(env, out, (jlong)refused);
  return status;
}

NATIVE(jint, monitorAdvance)(JNIEnv *env, jclass own, jlong monitor, jlong time) {
  (void)env, (void)own;
  return rondel_monitor_advance(MONITOR(monitor), time);
}

/* The result is the time; RONDEL_END without one. */
NATIVE(jint, monitorDeadline)(JNIEnv *env, jclass own, jlong monitor, jlongArray out) {
  (void)own;
  int64_t time = 0;
  rondel_status status = rondel_monitor_deadline(MONITOR(monitor), &time);
  set(env, out, (jlong)time);
  return status;
}

/* Checks columns, written as columns.h describes. */
NATIVE(jint, monitorCheckColumns)(JNIEnv *env, jclass own, jlong monitor, jlong topic, jbyteArray time, jbyteArray columns) {
  (void)own;
  borrowed name = borrow(env, time);
  borrowed written = borrow(env, columns);
  rondel_topic of = {(uint32_t)topic, (uint32_t)((uint64_t)topic >> 32)};
  rondel_status status = check_columns(MONITOR(monitor), of, (const char *)name.data, name.length,
                                       (const char *)written.data, written.length);
  give_back(env, written);
  give_back(env, name);
  return status;
}

NATIVE(jint, monitorFinish)(JNIEnv *env, jclass own, jlong monitor) {
  (void)env, (void)own;
  return rondel_monitor_finish(MONITOR(monitor));
}

/* Returns all reports one after another: time, about, robustness, verdict, is_after; then property, severity, key and
 * explanation, each after its length. */
NATIVE(jbyteArray, monitorReports)(JNIEnv *env, jclass own, jlong monitor) {
  (void)own;
  buffer all = {NULL, 0, 0, 0};
  rondel_report report;
  while (rondel_monitor_next_report(MONITOR(monitor), &report) == RONDEL_OK) {
    append(&all, &report.time, sizeof report.time);
    append(&all, &report.about, sizeof report.about);
    append(&all, &report.robustness, sizeof report.robustness);
    append(&all, &report.verdict, sizeof report.verdict);
    append(&all, &report.is_after, sizeof report.is_after);
    append_text(&all, report.property);
    append_text(&all, report.severity);
    append_text(&all, report.key);
    append_text(&all, report.explanation);
  }
  return take(env, &all);
}

/* Returns the JSON of all notices, each after its length. */
NATIVE(jbyteArray, monitorNotices)(JNIEnv *env, jclass own, jlong monitor) {
  (void)own;
  buffer all = {NULL, 0, 0, 0};
  rondel_notice notice;
  while (rondel_monitor_next_notice(MONITOR(monitor), &notice) == RONDEL_OK) {
    append_text(&all, notice.json);
  }
  return take(env, &all);
}

/* Returns null after an error, too. */
NATIVE(jbyteArray, monitorSnapshot)(JNIEnv *env, jclass own, jlong monitor) {
  (void)own;
  rondel_bytes bytes = {NULL, 0};
  jbyteArray array = NULL;
  if (rondel_monitor_snapshot(MONITOR(monitor), &bytes) == RONDEL_OK) {
    array = array_of(env, bytes.data, bytes.length);
  }
  rondel_bytes_free(bytes);
  return array;
}

/* Returns a part for each range between two neighbours of `cuts`; null after an error, too. */
NATIVE(jobjectArray, monitorSnapshotParts)(JNIEnv *env, jclass own, jlong monitor, jlongArray cuts) {
  (void)own;
  jsize count = (*env)->GetArrayLength(env, cuts) - 1;
  jclass bytes_class = (*env)->FindClass(env, "[B");
  jobjectArray parts = bytes_class == NULL ? NULL : (*env)->NewObjectArray(env, count, bytes_class, NULL);
  jlong *ends = (*env)->GetLongArrayElements(env, cuts, NULL);
  rondel_bytes *bytes = calloc((size_t)count + 1, sizeof *bytes);
  int is_whole = parts != NULL && ends != NULL && bytes != NULL &&
                 rondel_monitor_snapshot_parts(MONITOR(monitor), (const uint64_t *)ends, (size_t)count, bytes) == RONDEL_OK;
  for (jsize i = 0; i < count && is_whole; i++) {
    jbyteArray part = array_of(env, bytes[i].data, bytes[i].length);
    is_whole = part != NULL;
    if (is_whole) {
      (*env)->SetObjectArrayElement(env, parts, i, part);
      (*env)->DeleteLocalRef(env, part);
    }
  }
  for (jsize i = 0; i < count && bytes != NULL; i++) {
    rondel_bytes_free(bytes[i]);
  }
  free(bytes);
  if (ends != NULL) {
    (*env)->ReleaseLongArrayElements(env, cuts, ends, JNI_ABORT);
  }
  return is_whole ? parts : NULL;
}
