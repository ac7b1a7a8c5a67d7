// How the cluster begins to phone home, where its own Flux is looked at, and how it is kept as it is.
import { Text } from '@mantine/core'
import { pathOf } from '../../api/client.ts'
import { CopyAs, inShell } from '../../parts/copy-as.tsx'
import { Panel } from '../../parts/page.tsx'
import { useMay } from '../../session/permissions.ts'
import { HoldPanel } from './hold-panel.tsx'
import classes from './setup-view.module.css'

export function SetupView({ type, cluster }: { readonly type: string; readonly cluster: string }) {
  const mayIssue = useMay('admin')
  const bootstrap = `bootstrap ${inShell(cluster)}`
  return (
    <>
      <Panel
        title="Bootstrap"
        aside={<CopyAs call={{ method: 'GET', path: pathOf(type, cluster, 'bootstrap') }} cli={bootstrap} />}
      >
        <ol className={classes.steps}>
          <li>
            <Text size="sm">Install the Flux Operator on the cluster, if it is not there yet.</Text>
          </li>
          <li>
            <Text size="sm">
              {mayIssue
                ? 'Apply what makes it phone home, with a new token of its own in it; the former one stays valid for a day.'
                : 'Apply what makes it phone home; only an administrator can put a new token into it.'}
            </Text>
            <Command
              text={`flux-resourceset-cli ${bootstrap}${mayIssue ? ' --with-token' : ''} | kubectl apply -f -`}
            />
          </li>
          <li>
            <Text size="sm">Wait until it was served and has applied all of it.</Text>
            <Command text={`flux-resourceset-cli cluster status ${inShell(cluster)}`} />
          </li>
        </ol>
      </Panel>
      <HoldPanel cluster={cluster} />
    </>
  )
}

function Command({ text }: { readonly text: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: whoever has no mouse scrolls it with the arrow keys
    <pre className={classes.command} tabIndex={0}>
      {text}
    </pre>
  )
}
