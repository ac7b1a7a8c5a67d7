// With a type of one's own, by the client that oapi-codegen makes.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"

	"example.com/fleet-tool/fleet"
)

func main() {
	ctx := context.Background()
	authorize := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+os.Getenv("FLUX_API_WRITE_TOKEN"))
		return nil
	}
	client, err := fleet.NewClientWithResponses(os.Getenv("FLUX_API_URL"), fleet.WithRequestEditorFn(authorize))
	check(err)
	created, err := client.CreateNetworkPoliciesWithResponse(ctx, nil, fleet.NetworkPolicyToCreate{
		Id: "web", TargetNamespace: "web",
	})
	check(err)
	fmt.Println(created.StatusCode())
	var change fleet.NetworkPolicyToMerge
	check(json.Unmarshal([]byte(`{"ingress_rules":[{"from_namespace":"traefik","port":80}]}`), &change))
	patched, err := client.PatchNetworkPoliciesWithResponse(ctx, "web", nil, change)
	check(err)
	fmt.Println(patched.StatusCode())
	assigned, err := client.AssignNetworkPoliciesWithResponse(ctx, "demo-cluster-01", "web", nil, fleet.NetworkPolicyReferenceToReplace{})
	check(err)
	fmt.Println(assigned.StatusCode())
	poll, err := client.PollNetworkPoliciesWithResponse(ctx, "demo-cluster-01.k8s.example.com", nil)
	check(err)
	fmt.Println((*poll.JSON200).Inputs[0].IngressRules[0].FromNamespace)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
