// The clusters that need somebody, worst first, each with its reason and the next step as a command.
import { Button, Code, CopyButton, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { TroubledCluster } from '../../../src/api/attention-schema.ts'
import { queries, STATUS_REFRESH_MS } from '../../api/queries.ts'
import { Age } from '../../parts/age.tsx'
import { ClusterLink } from '../../parts/cluster-link.tsx'
import { AsOf, Loaded } from '../../parts/loaded.tsx'
import { Empty, Panel } from '../../parts/page.tsx'
import { StateBadge } from '../../parts/state-badge.tsx'
import classes from './attention-panel.module.css'

/** The worst of them; the count says how many there are. */
const SHOWN = 12

export function AttentionPanel() {
  const query = useQuery(queries.attention(SHOWN))
  return (
    <Panel title="Needs attention" aside={<AsOf query={query} staleAfterMs={4 * STATUS_REFRESH_MS} />}>
      <Loaded query={query} lines={6}>
        {({ total, clusters }) =>
          total === 0 ? (
            <Empty title="No cluster has a problem that is known here">
              Clusters that were never heard of are no problem here, and not known to be well either: the
              counts have them.
            </Empty>
          ) : (
            <>
              <ol className={classes.list}>
                {clusters.map((troubled) => (
                  <Troubled key={troubled.cluster} troubled={troubled} />
                ))}
              </ol>
              {total > clusters.length && (
                <Text size="xs" c="dimmed" p="sm">
                  and {total - clusters.length} more
                </Text>
              )}
            </>
          )
        }
      </Loaded>
    </Panel>
  )
}

function Troubled({ troubled }: { readonly troubled: TroubledCluster }) {
  const { cluster, environment, problem, since, component, endpoint, reason, message, next_step } = troubled
  const [advice, command] = splitStep(next_step)
  const where = component ?? endpoint
  return (
    <li className={classes.item}>
      <div className={classes.line}>
        <StateBadge state={problem} />
        <ClusterLink cluster={cluster} />
        <span className={classes.dim}>{environment}</span>
        <span className={classes.age}>
          <Age at={since} never="since when is unknown" />
        </span>
      </div>
      {(where || reason || message) && (
        <div className={classes.cause}>
          {where && <b>{where}</b>} {[reason, message].filter(Boolean).join(': ')}
        </div>
      )}
      <div className={classes.step}>
        <span>{advice}</span>
        {command && (
          <span className={classes.command}>
            <Code>{command}</Code>
            <CopyButton value={command}>
              {({ copied, copy }) => (
                <Button
                  variant="subtle"
                  size="compact-xs"
                  onClick={copy}
                  aria-label={`Copy the command for ${cluster}`}
                >
                  {copied ? 'Copied' : 'Copy'}
                </Button>
              )}
            </CopyButton>
          </span>
        )}
      </div>
    </li>
  )
}

/** A next step is one sentence, which may end with a colon and a command. */
function splitStep(step: string): [advice: string, command: string | undefined] {
  const [, advice, command] = /^(.*?): (\S.*)$/s.exec(step) ?? []
  return advice === undefined ? [step, undefined] : [`${advice}:`, command]
}
