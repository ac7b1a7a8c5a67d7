// The names of the objects that every bundle has, which templates may refer to.

export const NAMESPACE = 'flux-system'
export const IDENTITY = 'cluster-identity'
export const TOKEN_SECRET = 'internal-api-token'
export const PHONE_HOME = 'phone-home'
/** The ResourceSet that reports what the cluster has applied, and the provider of what every report begins with. */
export const ACK = 'fleet-ack'
/** The ResourceSet that sends Flux's events, and the Provider and the Alert in it. */
export const EVENTS = 'fleet-events'
/** The same for events of the Flux Operator itself. */
export const OPERATOR_EVENTS = 'fleet-events-operator'
/** The label of the providers that are marks: each says one thing that the cluster has reached. */
export const ACK_LABEL = 'flux-resourceset/ack'
