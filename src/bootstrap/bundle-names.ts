// The names of the objects that every bundle has, which templates may refer to.

export const NAMESPACE = 'flux-system'
export const IDENTITY = 'cluster-identity'
export const TOKEN_SECRET = 'internal-api-token'
export const PHONE_HOME = 'phone-home'
