"""A launch test with a monitor: `launch_test test_talker.py`.

The monitor starts first and ends with the other processes. Its exit status fails the test after a violation.
"""

import pathlib
import time
import unittest

import launch
import launch.actions
import launch_ros.actions
import launch_testing
import launch_testing.actions
import rondel

HERE = pathlib.Path(__file__).resolve().parent


def generate_test_description():
    # With --strict the exit status is 1 after a violation, and 4 if a property was not decided.
    command = [rondel.find_program(), "run", "--strict", "--explain", "--emit=violations", str(HERE / "talker.yaml")]
    monitor = launch.actions.ExecuteProcess(cmd=command, name="monitor", output="screen")
    talker = launch_ros.actions.Node(package="demo_nodes_cpp", executable="talker")
    ready = launch_testing.actions.ReadyToTest()
    return launch.LaunchDescription([monitor, talker, ready]), {"monitor": monitor}


class TestTalker(unittest.TestCase):
    def test_talks(self, proc_output, monitor):
        proc_output.assertWaitFor("ready after", process=monitor, timeout=20)
        time.sleep(5)


@launch_testing.post_shutdown_test()
class TestVerdicts(unittest.TestCase):
    def test_no_violation(self, proc_info, proc_output, monitor):
        output = "".join(each.text.decode() for each in proc_output[monitor])
        self.assertEqual(proc_info[monitor].returncode, 0, output)
