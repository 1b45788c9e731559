"""Tests the manifests that `ablate cluster kubernetes` prints, against Kubernetes' published schemas.

Usage: manifests_test.py BIN, the folder of the programs.
"""
import pathlib
import subprocess
import sys
import unittest

import kubernetes_validate
import yaml

BIN = pathlib.Path(sys.argv.pop(1)).resolve()


def run(*options):
    return subprocess.run([BIN / "ablate", "cluster", "kubernetes", *options], capture_output=True, text=True)


def manifests(*options):
    """The printed objects by kind."""
    done = run(*options)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return {one["kind"]: one for one in yaml.safe_load_all(done.stdout)}


class ManifestsTest(unittest.TestCase):
    def check(self, objects):
        for kind, one in objects.items():
            self.assertNotIn("${", str(one))
            if one["apiVersion"].startswith("keda.sh/"):
                continue  # not Kubernetes' own; their pods are checked below
            with self.subTest(kind):
                kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)

    def test_are_valid(self):
        for options in ([], ["--gpus", "1", "--max", "8"], ["--queue", "team", "--lanes", "3"]):
            objects = manifests(*options)
            self.assertEqual(set(objects), {"Service", "StatefulSet", "Job"})
            self.check(objects)

    def test_have_what_the_options_say(self):
        objects = manifests("--namespace", "lab", "--image", "registry.example.org/lab/ablate:0.2", "--max", "8",
                            "--gpus", "2", "--memory", "32Gi", "--queue", "team")
        job = objects["Job"]
        self.assertEqual({one["metadata"]["namespace"] for one in objects.values()}, {"lab"})
        self.assertEqual(job["metadata"]["labels"], {"kueue.x-k8s.io/queue-name": "team"})
        self.assertEqual(job["spec"]["parallelism"], 8)
        self.assertEqual(job["spec"]["podReplacementPolicy"], "Failed")
        pod = job["spec"]["template"]["spec"]
        self.assertEqual(pod["restartPolicy"], "Never")
        self.assertEqual(pod["terminationGracePeriodSeconds"], 120)
        [worker] = pod["containers"]
        self.assertEqual(worker["image"], "registry.example.org/lab/ablate:0.2")
        self.assertEqual(worker["resources"]["limits"], {"memory": "32Gi", "nvidia.com/gpu": "2"})
        self.assertIn('exec ablate-worker --join /tmp/worker.join --name "$POD" --device cuda\n', worker["args"][0])
        server = objects["StatefulSet"]["spec"]["template"]["spec"]["containers"][0]
        self.assertIn("ablate admin init ablate.lab.svc:7443", server["args"][0])

    def test_of_keda_end_idle_pods(self):
        objects = manifests("--keda", "--max", "5", "--cpus", "6")
        self.check(objects)
        scaled = objects["ScaledJob"]["spec"]
        self.assertEqual(scaled["maxReplicaCount"], 5)
        [trigger] = scaled["triggers"]
        self.assertEqual(trigger["metadata"], {"scalerAddress": "ablate.ablate.svc:7443", "device": "cpu",
                                               "lanes": "6", "tokenFromEnv": "ABLATE_TOKEN"})
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "one"}, "spec": scaled["jobTargetRef"]}
        kubernetes_validate.validate(job, kubernetes_validate.latest_version(), strict=True)
        [worker] = scaled["jobTargetRef"]["template"]["spec"]["containers"]
        self.assertIn("--device cpu --exit-when-idle 5m --lanes 6", worker["args"][0])

    def test_refuse_what_would_change_their_meaning(self):
        for options in (["--namespace", "a: b"], ["--image", "x\ny"], ["--memory", "{}"], ["--cpus", "0"]):
            done = run(*options)
            self.assertEqual(done.returncode, 64, options)
            self.assertIn(options[0], done.stderr)


unittest.main(verbosity=2)
