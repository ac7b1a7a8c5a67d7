// What hands that know kubectl and gh type without thinking works here too.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { parse } from 'yaml'
import { CLI, cli, cliEnv, onTerminal, outcomesOf } from './cli-process.ts'
import { serve } from './own-server.ts'
import { smallFleet, startUnheld, type TestService, temporaryFolder, WRITE_TOKEN } from './service.ts'

async function start(t: TestContext, options: { readonly now?: () => Date } = {}) {
  const service: TestService = await startUnheld(t, { fleet: smallFleet(), ...options })
  const run = outcomesOf((args) => cli(args, { url: service.url }))
  const output = async (line: string): Promise<string> => (await run.succeed(line.split(' '))).stdout
  return { service, url: service.url, output, ...run }
}

describe('names and orders', () => {
  test('the verb may come first, and nouns may be plural, short, or with their id', async (t) => {
    const { output, succeed, fail } = await start(t)
    const one = await output('cluster get one')
    for (const line of [
      'get cluster one',
      'get clusters/one',
      'cluster get clusters/one',
      'get -o table cluster one',
    ])
      assert.equal(await output(line), one, line)
    const list = await output('namespace list')
    for (const line of ['get namespaces', 'get ns', 'ns ls', 'namespaces list', 'ls ns'])
      assert.equal(await output(line), list, line)
    assert.equal(await output('rb list -o name'), await output('role-bindings list -o name'))
    assert.equal(await output('describe component a -o name'), 'platform_components/a\n')
    await succeed(['delete', 'ns', 'team-b', '-m', 'gone'])
    await fail(1, 'no namespace "team-b"', ['get', 'ns/team-b'])
    await fail(2, '"namespaces/team-a" is of namespaces, and this is for clusters', [
      'cluster',
      'get',
      'namespaces/team-a',
    ])
    await fail(2, "unknown command 'get'", ['get', 'nodes'])
  })

  test('the DNS name of a cluster stands for its id', async (t) => {
    const { output, fail } = await start(t)
    assert.equal(await output('cluster get one.k8s.example.com -o name'), 'clusters/one\n')
    assert.match(
      await output('component set a oci_tag=v7 --cluster one.k8s.example.com'),
      /on one: 1 document changed/,
    )
    await fail(1, 'no cluster "none.k8s.example.com"', ['cluster', 'get', 'none.k8s.example.com'])
  })

  test('several ids are read and deleted together, and missing ones are left out on request', async (t) => {
    const { output, succeed, fail } = await start(t)
    assert.equal(await output('cluster get two one -o name'), 'clusters/two\nclusters/one\n')
    await fail(1, 'no cluster "three"', ['cluster', 'get', 'one', 'three'])
    assert.equal(await output('cluster get one three --ignore-not-found -o name'), 'clusters/one\n')
    assert.equal(await output('cluster get three --ignore-not-found'), '')
    const { stderr } = await succeed(['cluster', 'rm', 'three', '--ignore-not-found'])
    assert.equal(stderr, 'nothing to delete\n')
    await fail(2, 'which cluster? Give ids, or --selector', ['cluster', 'delete'])
    assert.match(await output('cluster delete -l environment=prod --yes'), /^clusters\/two deleted/)
  })

  test('labels are set and removed, on one, on several, and on all that match', async (t) => {
    const { output, service, fail } = await start(t)
    await output('cluster label one wave=1 app.kubernetes.io/name=shop')
    await output('label cluster one two wave=2 app.kubernetes.io/name- --yes')
    await output('cluster label -l wave=2 late=yes --yes')
    const { body } = await service.call('GET', '/clusters')
    for (const { labels } of body)
      assert.deepEqual([labels.wave, labels.late, labels['app.kubernetes.io/name']], ['2', 'yes', undefined])
    await fail(2, 'which labels?', ['cluster', 'label', 'one'])
  })

  test('update takes the flags of create, and a file', async (t) => {
    const { output, service, fail } = await start(t)
    await output('namespace update team-a --label x=y --annotation owner=me')
    const file = join(temporaryFolder(t), 'ns.yaml')
    writeFileSync(file, (await output('namespace get team-a -o yaml')).replace('x: y', 'x: z'))
    await output(`namespace update team-a -f ${file}`)
    await output(`namespace update -f ${file} --set labels.more=1`)
    const { body } = await service.call('GET', '/namespaces/team-a')
    assert.deepEqual([body.labels.x, body.labels.more, body.annotations.owner], ['z', '1', 'me'])
    await fail(2, `${file} holds "team-a", not "team-b"`, ['namespace', 'update', 'team-b', '-f', file])
    await fail(2, `${file} holds a document of "namespaces", not of clusters`, [
      'cluster',
      'update',
      'one',
      '-f',
      file,
    ])
  })
})

describe('set, promote and like', () => {
  test('set changes clusters that have it and installs nothing', async (t) => {
    const { output, service, fail } = await start(t)
    const before = (await service.call('GET', '/clusters/two')).body
    assert.match(await output('component set a oci_tag=v9 -l environment --yes'), /1 another oci_tag of a/)
    assert.deepEqual((await service.call('GET', '/clusters/two')).body, before)
    const { body } = await service.call('GET', '/clusters/one')
    assert.equal(body.platform_components.find(({ id }: { id: string }) => id === 'a').oci_tag, 'v9')
    await output('component set a oci_tag- --cluster one')
    await fail(2, /clusters can set .*oci_tag.* not "replicas"/, [
      'component',
      'set',
      'a',
      'replicas=2',
      '--cluster',
      'one',
    ])
    await fail(2, 'oci_tag needs a value', ['component', 'set', 'a', 'oci_tag', '--cluster', 'one'])
  })

  test('promote gives the version of some clusters to others, and to the catalog', async (t) => {
    const { output, service, fail } = await start(t)
    await output('component assign a --cluster two')
    await output('component set a oci_tag=v9 --cluster one')
    assert.match(
      await output('component promote a --from dev --to prod --yes'),
      /promote a \(oci_tag=v9\) to prod: 1 document changed/,
    )
    const { body: two } = await service.call('GET', '/clusters/two')
    assert.equal(two.platform_components[0].oci_tag, 'v9')
    await output('component promote a --from environment=prod --to catalog --yes')
    assert.equal((await service.call('GET', '/platform_components/a')).body.oci_tag, 'v9')
    assert.deepEqual((await service.call('GET', '/overrides?id=a&kind=override')).body, [])
    await fail(2, 'nothing is left to promote', [
      'component',
      'promote',
      'a',
      '--from',
      'dev',
      '--to',
      'catalog',
    ])
    await output('component set a oci_tag=v10 --cluster one')
    await fail(4, /more than one way/, [
      'component',
      'promote',
      'a',
      '--from',
      'environment in (dev,prod)',
      '--to',
      'qa',
    ])
    await fail(4, 'no cluster that (environment=qa) selects', [
      'component',
      'promote',
      'a',
      '--from',
      'qa',
      '--to',
      'prod',
    ])
  })

  test('create --like takes everything but the identity, and the name from the id', async (t) => {
    const { output, service, url, fail } = await start(t)
    await output('cluster label one region=eu tier=gold')
    await output('cluster create new --like one --cluster-dns new.k8s.example.com --label region=ap')
    const [{ body: one }, { body: made }] = [
      await service.call('GET', '/clusters/one'),
      await service.call('GET', '/clusters/new'),
    ]
    assert.deepEqual(made.labels, { ...one.labels, region: 'ap' })
    assert.deepEqual(
      [made.cluster_name, made.platform_components, made.patches],
      ['new', one.platform_components, one.patches],
    )
    await fail(
      1,
      /^Error: --cluster-dns is required \(and 1 more\)\n {2}--cluster-dns is required\n {2}--environment is required$/m,
      ['cluster', 'create', 'x'],
    )
    const { screen } = await onTerminal(
      ['cluster', 'create', 'next', '--like', 'one', '--cluster-dns', 'n.k8s.example.com'],
      { url },
    )
    assert.match(screen, /^next: flux-resourceset-cli bootstrap next --with-token/m)
    const { stdout: help } = await cli(['cluster', 'create', '--help'], { url })
    assert.match(help, /--environment <dev\|qa\|uat\|prod> +.*\(required\)/)
    const { stdout: bindings } = await cli(['rolebinding', 'create', '--help'], { url })
    assert.match(bindings, /create ID --role \S+ --subject kind=/)
  })

  test('the flags of the demo command line are taken', async (t) => {
    const { output, service } = await start(t)
    await output(
      'component assign a --cluster two --enabled --cluster-oci-tag v5 --cluster-component-path other/path',
    )
    const [reference] = (await service.call('GET', '/clusters/two')).body.platform_components
    assert.deepEqual([reference.oci_tag, reference.component_path], ['v5', 'other/path'])
  })
})

describe('what is not there', () => {
  test('a name that is nearly right is answered with the right one', async (t) => {
    const { fail } = await start(t)
    await fail(1, 'Hint: did you mean team-a or team-b?', ['namespace', 'get', 'team-c'])
    await fail(1, 'Hint: did you mean one?', ['component', 'set', 'a', 'oci_tag=v1', '--cluster', 'onee'])
    assert.doesNotMatch(await fail(1, 'no namespace "zzz"', ['namespace', 'get', 'zzz']), /did you mean/)
  })

  test('a deleted cluster says when it was deleted, by whom, and how it comes back', async (t) => {
    const { output, fail } = await start(t)
    await output('cluster delete two --yes -m replaced')
    await fail(
      1,
      [/it was deleted in revision \d+ by writer, \d+s ago .*: replaced/, 'cluster restore two'],
      ['cluster', 'get', 'two'],
    )
    const list = await output('cluster list --deleted')
    assert.match(
      list,
      /^ID +ENV +LABELS +DELETED +REVISION +ACTOR +MESSAGE +DNS\ntwo +prod .* ago +\d+ +writer +replaced/,
    )
    assert.equal(await output('cluster list --deleted -o name'), 'clusters/two\n')
    await fail(1, 'Hint: did you mean two?', ['cluster', 'restore', 'twoo'])
    await fail(1, 'it appeared in revision 1', ['cluster', 'get', 'one', '--at', '0'])
  })

  test('a filter, a selector, a moment and a field are told as flags', async (t) => {
    const { fail } = await start(t)
    await fail(
      1,
      '--filter enviroment: there is no such filter: there are cluster_name, cluster_dns, environment',
      ['cluster', 'list', '--filter', 'enviroment=dev'],
    )
    await fail(1, '--at is revision 99, which is still to come', ['cluster', 'get', 'one', '--at', '99'])
    const said = [
      await fail(1, '--selector matches no cluster', [
        'component',
        'set',
        'a',
        'oci_tag=v1',
        '-l',
        'environment=qa',
        '--yes',
      ]),
      await fail(1, 'no cluster "nobody"', [
        'component',
        'patch',
        'a',
        '--cluster',
        'nobody',
        '--set',
        'a=b',
      ]),
    ]
    for (const text of said) assert.doesNotMatch(text, /\/operations|\?\w|allow_empty/)
    const file = join(temporaryFolder(t), 'ops.yaml')
    writeFileSync(
      file,
      '- {op: patch, type: namespaces, id: team-a, patch: {labels: {a: b}}}\n- {op: patch, type: namespaces, id: nope, patch: {}}\n',
    )
    await fail(1, `${file}, operation 2`, ['batch', '-f', file])
  })
})

describe('tokens', () => {
  test('none, a refused one and an expired one are three things', async (t) => {
    const { url, output, service } = await start(t)
    const ask = outcomesOf((args, options) => cli(args, options))
    const none = { url, env: { FLUX_API_TOKEN: undefined, FLUX_API_WRITE_TOKEN: undefined } }
    await ask.fail(1, [`no token for ${url}/`, 'login'], ['cluster', 'list'], none)
    await ask.fail(1, `the token of FLUX_API_TOKEN was refused by ${url}/`, ['cluster', 'list'], {
      url,
      env: { FLUX_API_TOKEN: 'wrong' },
    })
    await ask.fail(
      1,
      'the token of FLUX_API_WRITE_TOKEN was refused',
      ['component', 'set', 'a', 'oci_tag=v1', '--cluster', 'one'],
      { url, env: { FLUX_API_WRITE_TOKEN: 'wrong' } },
    )
    const secret = (await output('token create short --role viewer --expires 1s')).trim()
    await new Promise((resolve) => setTimeout(resolve, 1100))
    await ask.fail(
      1,
      /^Error: the token of --api-token expired \d+s ago/m,
      ['--api-token', secret, 'cluster', 'list'],
      none,
    )
    const { body } = await service.call('GET', '/clusters', { token: secret })
    assert.deepEqual([body.error, body.reason], ['unauthorized', 'credential_expired'])
  })

  test('the tokens of the environment go only to the URL that they came with', async (t) => {
    const [one, other] = [await start(t), await start(t)]
    const { fail } = outcomesOf((args) => cli(args, { url: one.url }))
    await fail(1, `no token for ${other.url}/`, ['--api-url', other.url, 'cluster', 'list'])
  })
})

describe('questions to the server', () => {
  test('whoami, version, docs, can-i, explain and api', async (t) => {
    const { output, url, fail, succeed } = await start(t)
    assert.match(await output('whoami'), /^To read:\nName: +reader/)
    assert.match(await output('version'), /^Client: +0\.1\.0\nServer: +test \(http/)
    assert.equal(await output('docs'), `${url}/docs\n`)
    assert.equal(await output('can-i delete cluster'), 'yes\n')
    assert.match(await output('explain component.oci_tag'), /^Name: +component\.oci_tag\nType: +string/)
    assert.match(
      await output('explain rolebinding.subjects'),
      /^Type: +list of object$[\s\S]*^kind +string +yes/m,
    )
    await fail(2, ['has no field "oci_tg"', 'did you mean oci_tag?'], ['explain', 'component.oci_tg'])
    assert.equal(parse(await output('api /clusters?limit=1')).length, 1)
    await succeed(['api', 'PATCH', '/namespaces/team-a', '-f', 'labels={"by":"api"}'])
    assert.equal(await output('api GET /namespaces/team-a -o jsonpath={.labels.by}'), 'api')
    await fail(1, 'no namespace "x"', ['api', '/namespaces/x'])
    await fail(2, 'a path begins with a slash', ['api', 'clusters'])
  })

  test('can-i knows the limits of a role', async (t) => {
    const { output, url } = await start(t)
    const env = {
      FLUX_API_TOKEN: (
        await output('token create dev --role editor --selector environment=dev --types clusters,namespaces')
      ).trim(),
      FLUX_API_WRITE_TOKEN: undefined,
    }
    const { succeed } = outcomesOf((args) => cli(args, { url, env }))
    const ask = async (line: string) => {
      const { code, stdout } = await cli(['can-i', ...line.split(' ')], { url, env })
      return [code, stdout]
    }
    assert.deepEqual(await ask('update ns'), [0, 'yes\n'])
    assert.deepEqual(await ask('update component'), [4, 'no\n'])
    assert.deepEqual(await ask('label cluster -l environment=dev'), [0, 'yes\n'])
    assert.deepEqual(await ask('label cluster -l environment=prod'), [4, 'no\n'])
    assert.deepEqual(await ask('token'), [4, 'no\n'])
    assert.match((await succeed(['can-i', 'update', 'clusters'])).stderr, /environment=dev/)
  })

  test('revert without a number asks about the last revision', async (t) => {
    const { url, output, fail, service } = await start(t)
    await output('cluster label one late=1')
    await fail(
      2,
      [/this would revert revision \d+, and there is no terminal/, 'patch clusters/one'],
      ['revert'],
    )
    const { code, screen } = await onTerminal(['revert'], { url, typing: [['go on: ', 'yes\n']] })
    assert.equal(code, 0, screen)
    assert.equal((await service.call('GET', '/clusters/one')).body.labels.late, undefined)
  })
})

describe('tables', () => {
  test('have columns that one chooses, an order, a beginning, and other formats', async (t) => {
    const { output, fail } = await start(t)
    await output('cluster label one region=eu')
    await output('cluster label two region=as')
    assert.equal(
      await output('cluster list --columns id,labels.region --sort-by labels.region'),
      'ID   LABELS.REGION\ntwo  as\none  eu\n',
    )
    assert.match(await output('cluster list -L region'), /^ID .* REGION +DNS\n/)
    assert.equal(await output('cluster list --offset 1 -o name'), 'clusters/two\n')
    assert.equal(
      await output('cluster list --columns id,labels -o csv'),
      'ID,LABELS\none,region=eu\ntwo,region=as\n',
    )
    assert.equal(
      await output('cluster list -o custom-columns=NAME:.id,R:.labels.region,X:.none'),
      'NAME  R   X\none   eu  <none>\ntwo   as  <none>\n',
    )
    await fail(2, 'there is no column "nope"', ['cluster', 'list', '--sort-by', 'nope'])
    await fail(2, 'this is no single table', ['cluster', 'describe', 'one', '-o', 'csv'])
  })

  test('times are ordered as times, and updated is when each document was last changed', async (t) => {
    let now = new Date('2026-01-31T12:00:00Z')
    const { service, output, fail } = await start(t, { now: () => now })
    const change = async (id: string): Promise<void> => {
      const { status } = await service.call('PATCH', `/clusters/${id}`, { body: { node_count: 3 } })
      assert.equal(status, 200)
    }
    await change('one')
    now = new Date('2026-02-11T12:00:00Z')
    await change('two')
    const ages = await output('cluster list --columns id,updated --sort-by updated')
    assert.match(ages, /^ID +UPDATED\ntwo +\d+d\none +\d+d\n$/)
    assert.match(await output('component list --columns id,updated'), /^ID +UPDATED\na +\d+d\n/)
    await fail(2, 'there is no column "updatet"', ['cluster', 'list', '--columns', 'updatet'])
  })

  test('what a cluster gets is a table of what one looks for first, without what only programs need', async (t) => {
    const { output } = await start(t)
    assert.equal(
      await output('cluster inputs one component'),
      [
        'ID  TAG     VERSION  PATH          CLUSTER-ENV-ENABLED  DEPENDS-ON  ENABLED  PATCHES     URL',
        'a   v1.0.0  1.0.0    core/a/1.0.0  false                            true     replicas=2  oci://registry.example.com/components',
        'b   v2.0.0  1.0.0    core/b/1.0.0  false                a           true                 oci://registry.example.com/components',
        '',
      ].join('\n'),
    )
  })

  for (const columns of [40, 80, 100, 200])
    test(`fit ${columns} columns, say what has no room, and never break a word of help`, async (t) => {
      const { url } = await start(t)
      for (const args of [
        ['cluster', 'list'],
        ['component', 'list'],
        ['log'],
        ['cluster', 'create', '--help'],
        ['--help'],
        ['cluster', 'get', 'nobody'],
        ['cluster', 'list', '--filter', 'wrong=x'],
      ]) {
        const { screen } = await onTerminal(args, { url, columns })
        // biome-ignore lint/suspicious/noControlCharactersInRegex: colours
        const lines = screen.replaceAll(/\u001b\[\d+m/g, '').split('\n')
        for (const line of lines)
          assert.ok(line.length <= columns, `${args.join(' ')} at ${columns}: ${line}`)
      }
      const { screen } = await onTerminal(['cluster', 'list'], { url, columns })
      if (columns === 40) assert.match(screen.replaceAll('\n', ' '), /no room for .*DNS.*: -o wide shows all/)
      if (columns === 200) assert.doesNotMatch(screen, /no room/)
    })
})

describe('completion', () => {
  test('asks the server for what could come next', async (t) => {
    const { url, output } = await start(t)
    await output('cluster label one region=eu')
    await output('cluster delete two --yes')
    const offered = async (...words: string[]): Promise<string[]> => {
      const { stdout } = await cli(['__complete', '--', ...words], { url })
      return stdout
        .split('\n')
        .filter(Boolean)
        .map((line) => line.split('\t')[0] ?? '')
    }
    assert.deepEqual(await offered('get', 'cl'), ['cluster'])
    assert.deepEqual(await offered('get', 'cluster', 'o'), ['one'])
    assert.deepEqual(await offered('cluster', 'restore', ''), ['two'])
    assert.deepEqual(await offered('cluster', 'list', '-l', 'reg'), ['region='])
    assert.deepEqual(await offered('cluster', 'list', '-l', 'region=eu,environment='), [
      'region=eu,environment=dev',
    ])
    assert.deepEqual(await offered('cluster', 'list', '--filter', 'environment=p'), ['environment=prod'])
    assert.deepEqual(await offered('cluster', 'update', 'one', '--set', 'environment=q'), ['environment=qa'])
    assert.deepEqual((await offered('show', '')).slice(0, 3), ['last', '3', '2'])
    assert.deepEqual(await offered('component', 'set', 'a', 'oci_tag=v1', '--cluster', 'o'), ['one'])
  })

  test('asks a server that does not know the prefix once more, without it', async (t) => {
    const { url } = await start(t)
    const asked: string[] = []
    const older = await serve(t, async ({ url: path = '/', headers }, response) => {
      asked.push(path)
      if (path.includes('id_prefix')) {
        response.writeHead(400, { 'content-type': 'application/json', 'x-request-id': 'r' })
        return response.end('{"error":"validation_error","message":"?id_prefix is an unknown parameter"}')
      }
      const answer = await fetch(new URL(path, url), {
        headers: { authorization: String(headers.authorization) },
      })
      response.writeHead(answer.status, {
        'content-type': 'application/json',
        'x-revision': answer.headers.get('x-revision') ?? '',
      })
      return response.end(await answer.text())
    })
    const { stdout } = await cli(['__complete', '--', 'cluster', 'get', 'o'], { url: older.url })
    assert.equal(stdout, 'one\n')
    assert.deepEqual(asked.slice(-2), ['/clusters?limit=200&id_prefix=o', '/clusters?limit=200'])
  })

  const shells = [
    [
      'bash',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is of bash
      'source "$1"; COMP_WORDS=(frs cluster list -l region = e); COMP_CWORD=6; _flux_resourceset_cli; echo "${COMPREPLY[@]}"',
      'eu',
    ],
    ['fish', 'source $argv[1]; complete -C "frs cluster get o"', 'one'],
    [
      'zsh',
      'autoload -Uz compinit; compinit -D; source "$1"; words=(frs cluster get o) CURRENT=4; _describe() { print -rl -- $found }; _flux_resourceset_cli; print -rl -- $_comps[frs]',
      'one',
    ],
  ] as const
  for (const [shell, script, expected] of shells) {
    const isThere = spawnSync(shell, ['-c', 'exit']).status === 0
    test(`works in ${shell}`, {
      skip: !isThere && `there is no ${shell} here: apt-get install ${shell}`,
    }, async (t) => {
      const { url, output } = await start(t)
      await output('cluster label one region=eu')
      const folder = temporaryFolder(t)
      for (const name of ['frs', 'flux-resourceset-cli']) symlinkSync(CLI, join(folder, name))
      const file = join(folder, 'completion')
      writeFileSync(file, await output(`completion ${shell}`))
      const env = cliEnv({ url })
      const options =
        shell === 'zsh'
          ? ['-fc', script, 'zsh', file]
          : shell === 'fish'
            ? ['-c', script, file]
            : ['-c', script, 'bash', file]
      const child = spawn(shell, options, {
        env: { ...env, PATH: `${folder}:${env.PATH}` },
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const found = Buffer.concat(await child.stdout.toArray()).toString()
      assert.equal(found.split('\n')[0], expected)
    })
  }

  test('is printed for PowerShell', async (t) => {
    const { output } = await start(t)
    assert.match(
      await output('completion powershell'),
      /^Register-ArgumentCompleter -Native -CommandName flux-resourceset-cli, frs /m,
    )
  })
})

describe('files', () => {
  test('export writes a folder that stays the same, follows the server, and can be applied', async (t) => {
    const { output, succeed } = await start(t)
    const folder = join(temporaryFolder(t), 'fleet')
    const first = await succeed(['export', '--output-dir', folder])
    assert.match(first.stderr, /files written, 0 deleted/)
    assert.match(readFileSync(join(folder, 'clusters/one.yaml'), 'utf8'), /^type: clusters\nid: one\n/)
    assert.match((await succeed(['export', '--output-dir', folder])).stderr, /; 0 files written, 0 deleted/)
    await output('namespace create extra')
    await output('cluster delete two --yes')
    assert.match((await succeed(['export', '--output-dir', folder])).stderr, /; 1 file written, 1 deleted/)
    assert.equal(existsSync(join(folder, 'clusters/two.yaml')), false)
    assert.equal(await output(`diff -f ${folder}`), '')
    assert.match(readFileSync(join(folder, 'EXPORTED'), 'utf8'), /^http:.* revision \d+\n$/)
  })

  test('what .frsignore names is neither read nor written nor deleted', async (t) => {
    const { succeed, fail } = await start(t)
    const folder = temporaryFolder(t)
    await succeed(['export', '--output-dir', folder])
    const foreign = join(folder, 'namespaces/values.yaml')
    writeFileSync(foreign, 'not: ours\n')
    await fail(2, [/values\.yaml: has no type/, '.frsignore'], ['diff', '-f', folder])
    writeFileSync(join(folder, '.frsignore'), '# of others\nvalues.yaml\nrolebindings/\n')
    await succeed(['diff', '-f', folder])
    rmSync(join(folder, 'rolebindings'), { recursive: true })
    assert.match((await succeed(['export', '--output-dir', folder])).stderr, /; 0 files written, 0 deleted/)
    assert.ok(existsSync(foreign) && !existsSync(join(folder, 'rolebindings')))
    assert.match((await succeed(['apply', '-f', folder, '--dry-run'])).stdout, /^Nothing would change/)
  })

  test('an edit that lost a race opens again on the newer version, with what was changed in it', async (t) => {
    const { url, service } = await start(t)
    const folder = temporaryFolder(t)
    const editor = join(folder, 'editor.sh')
    const change = `curl -s -X PATCH -H 'authorization: Bearer ${WRITE_TOKEN}' -H 'content-type: application/json' -d '{"annotations":{"other":"x"}}' ${url}/namespaces/team-a > ${folder}/other`
    writeFileSync(
      editor,
      `#!/bin/sh\nif [ -e ${folder}/other ]; then cp "$1" ${folder}/second; echo '# seen' >> "$1"\nelse sed -i 's/^labels:.*/labels: {mine: y}/; /^  team:/d' "$1"; ${change}; fi\n`,
    )
    const { code, screen } = await onTerminal(['namespace', 'edit', 'team-a'], {
      url,
      env: { EDITOR: `sh ${editor}` },
    })
    assert.equal(code, 0, screen)
    assert.match(readFileSync(join(folder, 'second'), 'utf8'), /# - somebody else has changed it meanwhile/)
    const { body } = await service.call('GET', '/namespaces/team-a')
    assert.deepEqual([body.labels, body.annotations], [{ mine: 'y' }, { other: 'x' }])
  })
})

test('an old Node is told in one line', () => {
  const old = `Object.defineProperty(process.versions, 'node', { value: '22.1.0' }); require(${JSON.stringify(CLI)})`
  const { status, stderr } = spawnSync(process.execPath, ['-e', old], { encoding: 'utf8' })
  assert.deepEqual([status, stderr.split('\n').length], [2, 2])
  assert.match(stderr, /^Error: this needs Node 24\.12 or newer/)
})
