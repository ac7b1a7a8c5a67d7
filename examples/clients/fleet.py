"""A cluster with a namespace of its own, by the client that openapi-python-client makes."""

import os

from fleet_client import AuthenticatedClient
from fleet_client.api.clusters import create_clusters, get_clusters, list_clusters, patch_clusters
from fleet_client.api.polls import poll_namespaces
from fleet_client.api.revisions import batch
from fleet_client.models import Batch, ClusterToCreate, ClusterToMerge, Error, ListClustersEnvironment

fleet = AuthenticatedClient(
    base_url=os.environ["FLUX_API_URL"],
    token=os.environ["FLUX_API_WRITE_TOKEN"],
    raise_on_unexpected_status=True,
)


def unwrap(answer):
    """What came back; a refusal says why in its message."""
    if answer is None or isinstance(answer, Error):
        raise RuntimeError(answer.message if answer else "the service gave no answer")
    return answer


clusters = unwrap(list_clusters.sync(client=fleet, environment=ListClustersEnvironment.DEV))
print("clusters:", *(cluster.id for cluster in clusters))

cluster_id, dns = "lab-01", "lab-01.k8s.example.com"
new = {"id": cluster_id, "cluster_name": "Lab 1", "cluster_dns": dns, "environment": "dev"}
unwrap(create_clusters.sync(client=fleet, body=ClusterToCreate.from_dict(new)))

change = {"labels": {"team": "lab"}}
unwrap(patch_clusters.sync(cluster_id, client=fleet, body=ClusterToMerge.from_dict(change)))

operations = [
    {"op": "create", "type": "namespaces", "document": {"id": "lab", "labels": {"team": "lab"}}},
    {"op": "assign", "type": "namespaces", "ref": {"id": "lab"}, "selector": "team=lab"},
]
unwrap(batch.sync(client=fleet, body=Batch.from_dict({"operations": operations})))

cluster = unwrap(get_clusters.sync(cluster_id, client=fleet))
print("labels:", cluster.labels["team"])
poll = unwrap(poll_namespaces.sync(dns, client=fleet))
print("inputs:", *(each.id for each in poll.inputs))
