# Lets a new cluster phone home, as a module: tells it who it is, installs the Flux Operator and applies the bootstrap
# bundle, which is the same file for every cluster of the fleet. From then on Terraform has no part in what runs there.
#
# Once for the whole fleet, and again when templates change, write the bundle and keep it beside your configuration:
#
#   flux-resourceset-cli bootstrap qa-eu-01 --flavor identity --token-secret internal-api-token > bootstrap.yaml
#
# Then, for each cluster, after what creates it:
#
#   module "phone_home" {
#     source       = "…/examples/terraform"
#     cluster_name = "qa-eu-01"
#     cluster_dns  = "qa-eu-01.k8s.example.com"
#     environment  = "qa"
#     api_url      = "https://fleet.example.com"
#     token        = var.fleet_read_token
#     bundle       = file("${path.root}/bootstrap.yaml")
#   }
#
#   provider "kubernetes" { … }               # of that cluster
#   provider "helm" { kubernetes = { … } }    # of that cluster
#
# The API must know the cluster, under this DNS name: until then its polls are a 404, and nothing happens.
#
# `terraform destroy` takes the bundle away while the operator still runs, and so everything that the cluster was given:
# deleting a ResourceSet deletes its objects. To let go of a cluster that goes on running, forget it instead:
#   terraform state rm module.phone_home

terraform {
  required_version = ">= 1.11"

  required_providers {
    kubernetes = {
      source  = "hashicorp/kubernetes"
      version = ">= 3.2.1, < 4.0.0"
    }
    helm = {
      source  = "hashicorp/helm"
      version = "~> 3.0"
    }
  }
}

locals {
  identity = {
    CLUSTER_NAME     = var.cluster_name
    CLUSTER_DNS      = var.cluster_dns
    ENVIRONMENT      = var.environment
    INTERNAL_API_URL = var.api_url
  }

  # Only these two are filled in: templatefile() would take offence at any other ${…} in a template of yours.
  bundle = replace(replace(var.bundle, "$${CLUSTER_DNS}", var.cluster_dns), "$${INTERNAL_API_URL}", var.api_url)

  # The namespace is made below, before anything that lives in it.
  manifests = [
    for manifest in split("\n---\n", local.bundle) : manifest
    if !contains(["", "Namespace"], try(yamldecode(manifest).kind, ""))
  ]
}

resource "kubernetes_namespace_v1" "flux_system" {
  metadata {
    name = "flux-system"
  }
}

resource "kubernetes_config_map_v1" "identity" {
  metadata {
    name      = "cluster-identity"
    namespace = kubernetes_namespace_v1.flux_system.metadata[0].name
  }
  data = local.identity
}

# Write-only: the token is neither in the plan nor in the state.
resource "kubernetes_secret_v1" "token" {
  metadata {
    name      = var.token_secret
    namespace = kubernetes_namespace_v1.flux_system.metadata[0].name
  }
  data_wo = {
    token   = var.token
    headers = "Authorization: Bearer ${var.token}" # for Flux's events
  }
  data_wo_revision = var.token_revision
}

resource "helm_release" "flux_operator" {
  name       = "flux-operator"
  namespace  = kubernetes_namespace_v1.flux_system.metadata[0].name
  repository = var.flux_operator_repository
  chart      = "flux-operator"
  version    = var.flux_operator_version
  values     = [yamlencode(var.flux_operator_values)]
}

# As a release: kubernetes_manifest would need the operator's resource types when planning, before they are there.
resource "helm_release" "bundle" {
  name      = "phone-home"
  namespace = kubernetes_namespace_v1.flux_system.metadata[0].name
  chart     = "${path.module}/bundle"
  values    = [yamlencode({ manifests = local.manifests })]

  depends_on = [helm_release.flux_operator, kubernetes_secret_v1.token]
}
