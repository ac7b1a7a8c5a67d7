variable "cluster_name" {
  description = "Display name of the cluster, as the API has it."
  type        = string
  nullable    = false

  validation {
    condition     = length(var.cluster_name) > 0
    error_message = "cluster_name must not be empty."
  }
}

variable "cluster_dns" {
  description = "DNS name that the cluster phones home with: the cluster_dns of its document in the API."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", var.cluster_dns)) && length(var.cluster_dns) <= 253
    error_message = "cluster_dns must be a DNS name in lower case, such as qa-eu-01.k8s.example.com."
  }
}

variable "environment" {
  description = "Tier of the cluster, such as dev, qa, uat or prod."
  type        = string
  nullable    = false

  validation {
    condition     = length(var.environment) > 0
    error_message = "environment must not be empty."
  }
}

variable "api_url" {
  description = "Where the cluster reaches the API."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^https?://[^/?#\\s]+(/[^?#\\s]*[^/?#\\s])?$", var.api_url))
    error_message = "api_url must be an https:// URL without a slash at its end, such as https://fleet.example.com."
  }
}

variable "token" {
  description = "Token to poll with: the AUTH_TOKEN of the API."
  type        = string
  nullable    = false
  sensitive   = true
  ephemeral   = true

  validation {
    condition     = can(regex("^[!-~]+$", var.token))
    error_message = "token must be printable ASCII without spaces."
  }
}

variable "token_revision" {
  description = "Raise it to have a new token written: Terraform does not know the old one."
  type        = number
  default     = 1
  nullable    = false

  validation {
    condition     = var.token_revision >= 1 && floor(var.token_revision) == var.token_revision
    error_message = "token_revision must be a whole number from 1 on."
  }
}

variable "token_secret" {
  description = "Name of the Secret with the token: the --token-secret that the bundle was written with."
  type        = string
  default     = "internal-api-token"
  nullable    = false
}

variable "bundle" {
  description = "The bundle of the identity flavor, as `bootstrap` wrote it."
  type        = string
  nullable    = false

  validation {
    condition     = strcontains(var.bundle, "$${CLUSTER_DNS}") && strcontains(var.bundle, "$${INTERNAL_API_URL}")
    error_message = "bundle must be of the identity flavor: write it with `bootstrap --flavor identity`."
  }

  validation {
    condition     = !strcontains(var.bundle, "\nkind: Secret\n")
    error_message = "bundle must not hold the Secret: write it with `bootstrap --token-secret internal-api-token`."
  }
}

variable "flux_operator_version" {
  description = "Version of the Flux Operator's chart."
  type        = string
  default     = "0.58.1"
  nullable    = false

  validation {
    condition     = can(regex("^[0-9]+[.][0-9]+[.][0-9]+$", var.flux_operator_version))
    error_message = "flux_operator_version must be exact, such as 0.58.1."
  }
}

variable "flux_operator_repository" {
  description = "Where the chart of the Flux Operator comes from; a mirror, where there is no internet."
  type        = string
  default     = "oci://ghcr.io/controlplaneio-fluxcd/charts"
  nullable    = false
}

variable "flux_operator_values" {
  description = "Values of the chart of the Flux Operator, such as where its image comes from."
  type        = any
  default     = {}
  nullable    = false
}
