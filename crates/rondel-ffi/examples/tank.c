/* Checks the level of a tank: single messages, a deadline, a batch, the summary. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "rondel.h"

static const char *const VERDICTS[] = {"satisfied", "violated", "inconclusive"};

/* Prints the message of an error, and ends the program. */
static void expect(rondel_status status) {
  if (status >= 0) return;
  fprintf(stderr, "error %d: %s\n", (int)status, rondel_last_error());
  exit(1);
}

static void print_reports(rondel_monitor *monitor) {
  rondel_report report;
  while (rondel_monitor_next_report(monitor, &report) == RONDEL_OK) {
    printf("%" PRId64 " ms %s %s\n", report.time / 1000000, report.property.data, VERDICTS[report.verdict]);
  }
}

int main(void) {
  const int64_t second = 1000000000;

  rondel_specification *specification;
  expect(rondel_specification_compile(
      "topic tank { level: float }\n"
      "property low = tank.level < 40\n"
      "property alive = age(tank) <= 2 s\n",
      RONDEL_NUL_TERMINATED, &specification));

  rondel_monitor *monitor;
  expect(rondel_monitor_open(specification, NULL, &monitor));
  rondel_specification_free(specification);

  rondel_topic tank;
  expect(rondel_monitor_topic(monitor, "tank", RONDEL_NUL_TERMINATED, &tank));
  expect(rondel_monitor_push(monitor, tank, 1 * second, "{\"level\": 38.0}", RONDEL_NUL_TERMINATED));
  print_reports(monitor);
  expect(rondel_monitor_push(monitor, tank, 2 * second, "{\"level\": 41.5}", RONDEL_NUL_TERMINATED));
  print_reports(monitor);

  /* No message comes: the tank is silent. */
  expect(rondel_monitor_advance(monitor, 6 * second));
  print_reports(monitor);

  const rondel_message batch[] = {
      {7 * second, "{\"level\": 39.0}", RONDEL_NUL_TERMINATED, tank},
      {8 * second, "{\"level\": 42.0}", RONDEL_NUL_TERMINATED, tank},
      {9 * second, "{\"level\": 38.5}", RONDEL_NUL_TERMINATED, tank},
  };
  expect(rondel_monitor_push_batch(monitor, batch, 3, NULL));
  print_reports(monitor);

  expect(rondel_monitor_finish(monitor));
  print_reports(monitor);
  rondel_text summary;
  expect(rondel_monitor_summary(monitor, &summary));
  puts(summary.data);
  rondel_monitor_free(monitor);
  return 0;
}
