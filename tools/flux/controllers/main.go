// Command controllers does with manifests what Flux's controllers do inside a cluster, by their own libraries:
//
//	controllers values      reads a HelmRelease's valuesFrom and the ConfigMap behind it, a JSON object for each release,
//	                        and prints the values that its chart gets
//	controllers substitute  reads a YAML stream and fills it in as a Kustomization that substitutes from the ConfigMap
//	                        cluster-identity in the first argument, in strict mode
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/chartutil"
	"github.com/fluxcd/pkg/kustomize"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/provider"
)

// cluster is a client of a cluster that holds one ConfigMap, whatever it is called.
type cluster struct {
	client.Client
	data map[string]string
}

func (c cluster) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	object.(*corev1.ConfigMap).Data = c.data
	return nil
}

func main() {
	work := map[string]func() error{"values": values, "substitute": substitute}[os.Args[1]]
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func values() error {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for in.More() {
		var release struct {
			Data       map[string]string      `json:"data"`
			ValuesFrom []meta.ValuesReference `json:"valuesFrom"`
		}
		if err := in.Decode(&release); err != nil {
			return err
		}
		values, err := chartutil.ChartValuesFromReferences(context.Background(), logr.Discard(),
			cluster{data: release.Data}, "flux-system", nil, release.ValuesFrom...)
		answer := map[string]any{"values": values}
		if err != nil {
			answer = map[string]any{"error": err.Error()}
		}
		if err := out.Encode(answer); err != nil {
			return err
		}
	}
	return nil
}

func substitute() error {
	var identity map[string]string
	if err := json.Unmarshal([]byte(os.Args[2]), &identity); err != nil {
		return err
	}
	manifests, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	resources, err := provider.NewDefaultDepProvider().GetResourceFactory().SliceFromBytes(manifests)
	if err != nil {
		return err
	}
	source := map[string]any{"kind": "ConfigMap", "name": "cluster-identity"}
	kustomization := unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"postBuild": map[string]any{"substituteFrom": []any{source}}},
	}}
	for _, resource := range resources {
		filled, err := kustomize.SubstituteVariables(context.Background(), cluster{data: identity}, kustomization,
			resource, kustomize.SubstituteWithStrict(true))
		if err != nil {
			return err
		}
		// Nothing comes back for what says that it is to be left alone.
		if filled == nil {
			filled = resource
		}
		text, err := filled.AsYAML()
		if err != nil {
			return err
		}
		fmt.Printf("---\n%s", text)
	}
	return nil
}
