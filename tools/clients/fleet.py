"""With a type of one's own, by the client that openapi-python-client makes."""

import os

from fleet_client import AuthenticatedClient
from fleet_client.api.clusters import assign_network_policies
from fleet_client.api.network_policies import create_network_policies, patch_network_policies
from fleet_client.api.polls import poll_network_policies
from fleet_client.models import NetworkPolicyToCreate, NetworkPolicyToMerge

fleet = AuthenticatedClient(base_url=os.environ["FLUX_API_URL"], token=os.environ["FLUX_API_WRITE_TOKEN"])
new = NetworkPolicyToCreate(id="web", target_namespace="web")
print(int(create_network_policies.sync_detailed(client=fleet, body=new).status_code))
change = NetworkPolicyToMerge.from_dict({"ingress_rules": [{"from_namespace": "traefik", "port": 80}]})
print(int(patch_network_policies.sync_detailed("web", client=fleet, body=change).status_code))
print(int(assign_network_policies.sync_detailed("demo-cluster-01", "web", client=fleet).status_code))
poll = poll_network_policies.sync("demo-cluster-01.k8s.example.com", client=fleet)
print(poll.inputs[0].ingress_rules[0].from_namespace)
