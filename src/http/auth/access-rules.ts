// Access rules from a file: which role and scope OIDC users and client certificates get.
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { isObject, type Json } from '../../base/json.ts'
import { checkGrant, type Grant, ROLES } from '../../domain/access/grant.ts'
import { canonicalDns, type Types } from '../../domain/types/resource-type.ts'
import { buildChecker } from '../../registry/validator.ts'
import type { Read } from '../../runtime/follow-files.ts'

interface ClaimRule extends Grant {
  /** A value of the role claim. */
  readonly claim: string
}

export interface CertificateRule extends Grant {
  /** A name in the certificate; `*` stands for one part of it. */
  readonly name: string
}

export interface AccessRules {
  readonly oidc: readonly ClaimRule[]
  readonly certificates: readonly CertificateRule[]
}

export const NO_RULES: AccessRules = { oidc: [], certificates: [] }

const text = { type: 'string', minLength: 1 }
const grant = {
  role: { type: 'string', enum: ROLES },
  cluster: text,
  selector: text,
  types: { type: 'array', items: text, minItems: 1, uniqueItems: true },
}
const rules = (key: string) => ({
  type: 'array',
  items: {
    type: 'object',
    required: [key, 'role'],
    properties: { [key]: text, ...grant },
    additionalProperties: false,
  },
})
const checkRules = buildChecker({
  type: 'object',
  properties: { oidc: rules('claim'), certificates: rules('name') },
  additionalProperties: false,
})

export function readAccessRules(path: string, types: Types): Read<AccessRules> {
  let content: Json
  try {
    content = parse(readFileSync(path, 'utf8')) as Json
  } catch (error) {
    const [first] = (error as Error).message.split('\n')
    return { ok: false, problems: [`ACCESS_FILE ${path}: ${first}`] }
  }
  const details = isObject(content)
    ? checkRules(content)
    : [{ path: '', message: 'must hold the lists "oidc" and "certificates", or one of them' }]
  const read = { ...NO_RULES, ...(content as Partial<AccessRules>) }
  if (details.length === 0) {
    for (const list of ['oidc', 'certificates'] as const)
      for (const [i, rule] of read[list].entries())
        for (const { path: at, message } of checkRule(types, rule))
          details.push({ path: `/${list}/${i}${at}`, message })
  }
  if (details.length === 0) return { ok: true, value: read }
  return {
    ok: false,
    problems: details.map(({ path: at, message }) => `ACCESS_FILE ${path}: ${`${at} ${message}`.trim()}`),
  }
}

function checkRule(types: Types, rule: ClaimRule | CertificateRule) {
  const isNamed = 'name' in rule
  if (rule.cluster?.includes('*') && !(isNamed && rule.name.includes('*')))
    return [
      { path: '/cluster', message: 'holds *, which stands for what * in the name of a certificate matches' },
    ]
  return checkGrant(types, undefined, rule)
}

/** The first rule, in the order of the file, that names one of the values. */
export function grantOfClaims({ oidc }: AccessRules, values: readonly string[]): Grant | undefined {
  const rule = oidc.find(({ claim }) => values.includes(claim))
  if (!rule) return undefined
  const { claim: _claim, ...given } = rule
  return given
}

/**
 * The grant of the first rule that matches a name of a certificate, and that name. `*` in the rule's cluster is replaced by
 * what `*` matched in the name. A certificate whose names match several clusters gets no grant.
 */
export function grantOfNames(
  { certificates }: AccessRules,
  names: readonly string[],
): { readonly name: string; readonly grant: Grant } | undefined {
  for (const { name: wanted, ...given } of certificates) {
    const parts = usual(wanted).split('*').map(RegExp.escape)
    const pattern = new RegExp(`^${parts.join('([^./]+)')}$`)
    const fitting = names.flatMap((name) => {
      const matched = pattern.exec(usual(name))
      if (!matched) return []
      const cluster = given.cluster?.replace('*', () => matched[1] ?? '*')
      return [{ name, grant: { ...given, ...(cluster !== undefined && { cluster }) } }]
    })
    const isOne = new Set(fitting.map(({ grant }) => grant.cluster)).size === 1
    if (fitting.length > 0) return isOne ? fitting[0] : undefined
  }
  return undefined
}

/** DNS names are compared without case and without a trailing dot; URIs exactly. */
function usual(name: string): string {
  return name.includes('://') ? name : canonicalDns(name)
}
