// Checks Kubernetes objects as an API server of the version in go.mod checks them before it creates them: unknown and
// repeated fields, defaults, validation, and Pod Security at its strictest level.
//
// It reads YAML documents from standard input. It prints each object with its defaults as a line of JSON, and each
// finding as a line on standard error. Exit status 1 if there are findings.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	request "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/secret"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/networking/ingress"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/pod-security-admission/admission"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

var strategies = map[string]rest.RESTCreateStrategy{
	"ConfigMap":             configmap.Strategy,
	"Deployment":            deployment.Strategy,
	"Ingress":               ingress.Strategy,
	"Job":                   job.Strategy,
	"NetworkPolicy":         networkpolicy.Strategy,
	"PersistentVolumeClaim": persistentvolumeclaim.Strategy,
	"PodDisruptionBudget":   poddisruptionbudget.Strategy,
	"Secret":                secret.Strategy,
	"Service":               service.Strategy,
	"ServiceAccount":        serviceaccount.Strategy,
	"StatefulSet":           statefulset.Strategy,
}

func main() {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		panic(err)
	}
	documents := yaml.NewYAMLReader(bufio.NewReader(os.Stdin))
	found := false
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			panic(err)
		}
		for _, finding := range check(document, evaluator) {
			found = true
			fmt.Fprintln(os.Stderr, finding)
		}
	}
	if found {
		os.Exit(1)
	}
}

// check returns the findings of one document. An empty one has none.
func check(document []byte, evaluator policy.Evaluator) []string {
	var empty map[string]any
	if yaml.Unmarshal(document, &empty) == nil && len(empty) == 0 {
		return nil
	}
	codecs := serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict)
	object, kind, err := codecs.UniversalDeserializer().Decode(document, nil, nil)
	if err != nil {
		return []string{"not decoded: " + err.Error()}
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return []string{"not decoded: " + err.Error()}
	}
	findings := create(object, kind)
	findings = append(findings, secure(object, evaluator)...)
	line, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
	for i, finding := range findings {
		findings[i] = kind.Kind + " " + accessor.GetName() + ": " + finding
	}
	return findings
}

// create does what comes before an object is stored.
func create(object runtime.Object, kind *schema.GroupVersionKind) []string {
	strategy, known := strategies[kind.Kind]
	if !known {
		return []string{"there is no check for this kind"}
	}
	legacyscheme.Scheme.Default(object)
	internal, err := legacyscheme.Scheme.ConvertToVersion(object, runtime.InternalGroupVersioner)
	if err != nil {
		return []string{err.Error()}
	}
	accessor, err := meta.Accessor(internal)
	if err != nil {
		return []string{err.Error()}
	}
	if accessor.GetNamespace() == "" {
		accessor.SetNamespace("default")
	}
	ctx := request.WithRequestInfo(
		request.WithNamespace(request.NewContext(), accessor.GetNamespace()),
		&request.RequestInfo{APIGroup: kind.Group, APIVersion: kind.Version},
	)
	var findings []string
	rest.FillObjectMetaSystemFields(accessor)
	if err := rest.BeforeCreate(strategy, ctx, internal); err != nil {
		findings = append(findings, err.Error())
	}
	for _, warning := range strategy.WarningsOnCreate(ctx, internal) {
		findings = append(findings, "warning: "+warning)
	}
	return findings
}

// secure says what Pod Security refuses at the level "restricted".
func secure(object runtime.Object, evaluator policy.Evaluator) []string {
	metadata, spec, err := admission.DefaultPodSpecExtractor{}.ExtractPodSpec(object)
	if err != nil || spec == nil {
		return nil
	}
	level := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(level, metadata, spec))
	if result.Allowed {
		return nil
	}
	return []string{"Pod Security: " + result.ForbiddenDetail()}
}
