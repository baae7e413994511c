/* Columns without rows, in the structures of the Arrow C data interface: for the types of a table. */
#ifndef RONDEL_FLINK_COLUMNS_H
#define RONDEL_FLINK_COLUMNS_H

#include "rondel.h"

/* Checks columns against the fields of a topic that the specification reads, by evaluating no rows of them. `columns` is the
 * row, a structure: format, name, and the number of its columns in decimal, each followed by a NUL; then its columns in the
 * same form. */
rondel_status check_columns(rondel_monitor *monitor, rondel_topic topic, const char *time, size_t time_length,
                            const char *columns, size_t length);

#endif
