// A cluster with a namespace of its own, by the client that oapi-codegen makes.
package main

import (
	"context"
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

	dev := fleet.ListClustersParamsEnvironment("dev")
	list, err := client.ListClustersWithResponse(ctx, &fleet.ListClustersParams{Environment: &dev})
	check(err, list)
	fmt.Print("clusters:")
	for _, cluster := range *list.JSON200 {
		fmt.Print(" ", cluster.Id)
	}
	fmt.Println()

	id, dns := "lab-01", "lab-01.k8s.example.com"
	created, err := client.CreateClustersWithResponse(ctx, nil, fleet.ClusterToCreate{
		Id: id, ClusterName: "Lab 1", ClusterDns: dns, Environment: "dev",
	})
	check(err, created)

	team, selector := "lab", "team=lab"
	patched, err := client.PatchClustersWithResponse(ctx, id, nil, fleet.ClusterToMerge{
		Labels: &map[string]*string{"team": &team},
	})
	check(err, patched)

	create := fleet.CreateOperation{Type: "namespaces"}
	check(create.Document.FromNamespaceToCreate(fleet.NamespaceToCreate{
		Id: "lab", Labels: &map[string]string{"team": team},
	}))
	assign := fleet.AssignOperation{Type: "namespaces", Selector: &selector}
	check(assign.Ref.FromNamespaceReferenceToAssign(fleet.NamespaceReferenceToAssign{Id: "lab"}))
	operations := make([]fleet.BatchOperation, 2)
	check(operations[0].FromCreateOperation(create))
	check(operations[1].FromAssignOperation(assign))
	written, err := client.BatchWithResponse(ctx, nil, fleet.Batch{Operations: operations})
	check(err, written)

	cluster, err := client.GetClustersWithResponse(ctx, id, nil)
	check(err, cluster)
	fmt.Println("labels:", (*cluster.JSON200.Labels)["team"])
	poll, err := client.PollNamespacesWithResponse(ctx, dns, nil)
	check(err, poll)
	fmt.Print("inputs:")
	for _, input := range poll.JSON200.Inputs {
		fmt.Print(" ", input.Id)
	}
	fmt.Println()
}

type answer interface {
	StatusCode() int
	Status() string
}

// check ends the program when a request failed, or was refused.
func check(err error, answers ...answer) {
	if err != nil {
		log.Fatal(err)
	}
	for _, each := range answers {
		if each.StatusCode() >= 300 {
			log.Fatal(each.Status())
		}
	}
}
