output "identity" {
  description = "Who the cluster was told that it is: the data of the ConfigMap cluster-identity."
  value       = kubernetes_config_map_v1.identity.data
}

output "polls" {
  description = "What the cluster polls: this URL and the name of an endpoint, such as namespaces."
  value       = "${var.api_url}/api/v2/flux/clusters/${var.cluster_dns}"
}

output "flux_operator_version" {
  description = "Version of the Flux Operator on the cluster."
  value       = helm_release.flux_operator.version
}
