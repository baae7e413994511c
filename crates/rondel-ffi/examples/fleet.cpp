// Checks the brakes of a fleet: a monitor for each robot, mistakes as exceptions, a snapshot in two parts.
#include <iostream>

#include "rondel.hpp"

namespace {

const char *const TEXT = R"(
topic robot "fleet/{name}/state" { speed: float, brake: bool }

property brakes for each n in robot.name = robot.speed > 10 -> once[0, 3 s] robot.brake
)";

constexpr std::int64_t SECOND = 1'000'000'000;

void print(const std::vector<rondel::report> &reports) {
  for (const auto &report : reports) {
    std::cout << report.time / SECOND << " s " << report.property << " " << report.key << " "
              << rondel::to_string(report.verdict) << "\n";
  }
}

}  // namespace

int main() {
  try {
    rondel::specification mistaken("topic tank { level: float }  property low = tank.lvel < 40");
  } catch (const rondel::specification_error &error) {
    for (const auto &found : error.diagnostics()) {
      std::cout << found.line << ":" << found.column << " " << found.message << "\n";
    }
  }

  const rondel::specification specification(TEXT);
  rondel::monitor monitor(specification);
  print(monitor.update("fleet/r1/state", 1 * SECOND, R"({"speed": 4.0, "brake": true})"));
  print(monitor.update("fleet/r2/state", 1 * SECOND, R"({"speed": 4.0, "brake": false})"));

  // Each half of the robots could move to a monitor of its own; here one takes both.
  const std::uint64_t half = RONDEL_KEY_HASHES / 2;
  const auto low = monitor.snapshot_part(0, half);
  const auto high = monitor.snapshot_part(half, RONDEL_KEY_HASHES);
  auto restored = rondel::monitor::restore_parts(specification, {low, high});
  print(restored.update("fleet/r1/state", 3 * SECOND, R"({"speed": 11.0, "brake": false})"));
  print(restored.update("fleet/r2/state", 3 * SECOND, R"({"speed": 11.0, "brake": false})"));
  try {
    restored.update("fleet/r2/state", 4 * SECOND, "no JSON");
  } catch (const rondel::error &error) {
    std::cout << (error.status() == RONDEL_ERROR_MESSAGE ? "message refused" : error.what()) << "\n";
  }
  print(restored.finish());
  std::cout << restored.summary() << "\n";
}
